// A job in pieces: above, its stages one after the other; below, side by side on pieces.
"use strict";

courseFigure.start("overlap", "Above: one after the other. Below: in pieces, each engine as soon as it can. " +
  "The dotted line is the longest stage; no number of pieces gets below it.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, number, plain, value } = courseFigure;
  const { limits, first, lanes } = numbers;
  const ways = choice(controls, "What is copied?", redraw);
  ways.set(numbers.ways, first.ways);

  const entry = (text, key, whole) => number(controls, text, first[key], () => limits[key], redraw, whole);
  const copy = entry("One copy of everything, ms", "copy", false);
  const compute = entry("Computing everything, ms", "compute", false);
  const pieces = entry("Pieces", "pieces", true);
  const cost = entry("Fixed cost of an operation, µs", "cost", false);

  const stages = () => [copy.value, compute.value, ...(ways.value === "both" ? [copy.value] : [])];
  const longest = () => d3.max(stages());
  const total = (n) => longest() + (d3.sum(stages()) - longest()) / n + (n + stages().length - 1) * cost.value / 1000;
  const best = () => d3.least(d3.range(limits.pieces[0], limits.pieces[1] + 1), total);

  function say() {
    const wrong = [copy, compute, pieces, cost].find((one) => one.wrong);
    if (wrong) {
      result.html(`<strong class="limit wrong"></strong>`).select(".wrong").text(wrong.wrong);
      return;
    }
    const turns = total(1);
    const now = total(pieces.value);
    const change = Math.abs(1 - now / turns);
    const verdict = pieces.value === 1 ? "That is one piece, so nothing overlaps."
      : `That is ${value("saved", 1 - now / turns, `${plain(100 * change)}%`)} ${now < turns ? "less" : "more"}.`;
    const end = cost.value === 0 ? "Without a fixed cost, more pieces are always better"
      : best() === limits.pieces[1] ? "Even the most pieces that can be entered are not too many" : "The best number";
    result.html(`One after the other: ${value("turns", turns, `${plain(turns)} ms`)}. In ${pieces.value}
      ${pieces.value === 1 ? "piece" : "pieces"}: <strong>${value("now", now, `${plain(now)} ms`)}</strong>. ${verdict}
      ${end}: ${value("best", best(), best())} ${best() === 1 ? "piece" : "pieces"}, with
      ${value("least", total(best()), `${plain(total(best()))} ms`)}.`);
  }

  // Start and length of piece number n in each stage: the stages up to there go at the pace of the slowest of them.
  function bars(count) {
    const each = stages().map((time) => time / count + cost.value / 1000);
    return each.map((mine, place) => d3.range(count).map((n) =>
      [d3.sum(each.slice(0, place)) + n * d3.max(each.slice(0, place + 1)), mine]));
  }

  return (width) => {
    say();
    const edge = { left: 78, right: 14 };
    const [bar, gap] = [24, 5];
    const end = Math.max(total(1), total(pieces.value));
    const x = d3.scaleLinear([0, end], [edge.left, width - edge.right]);
    let y = 4;
    for (const count of [1, pieces.value]) {
      bars(count).forEach((stage, lane) => {
        svg.append("text").attr("x", edge.left - 8).attr("y", y + bar / 2 + 5).attr("text-anchor", "end").text(lanes[lane]);
        for (const [start, long] of stage) {
          svg.append("rect").attr("class", `place ${["A", "B", "C"][lane]}`).attr("x", x(start)).attr("y", y)
            .attr("width", Math.max(1, x(start + long) - x(start))).attr("height", bar);
        }
        y += bar + gap;
      });
      y += 14;
    }
    svg.append("line").attr("class", "live").attr("x1", x(longest())).attr("x2", x(longest())).attr("y1", 0).attr("y2", y - 6);
    svg.append("g").attr("class", "axes").attr("transform", `translate(0,${y})`).call(d3.axisBottom(x).ticks(5));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width) / 2).attr("y", y + 36)
      .attr("text-anchor", "middle").text("time, ms");
    svg.attr("height", y + 44);
  };
});
