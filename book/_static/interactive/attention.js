// The sweep of one query over blocks of keys: the largest score, and what the sum and the output keep and gain.
"use strict";

courseFigure.start("attention", "Above: the scores; the strong blue ones are this block's, and the line is the largest so far. " +
  "Below: dotted, what was gathered before; blue, what the factor leaves of it; orange, what this block adds.",
({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, value } = courseFigure;
  const STEP_MS = 1400;
  const fixed = d3.format(".3f");
  const order = choice(controls, "Order of the keys", () => { stop(); redraw(); });
  const block = choice(controls, "Keys in a block", () => { stop(); fit(); redraw(); });
  const seen = slider(controls, "Blocks seen", 1, (done) => `${done} of ${count()}`, () => { stop(); redraw(); });
  const buttons = controls.append("div").attr("class", "buttons");
  const button = (text, pressed) => buttons.append("button").attr("type", "button").text(text).on("click", pressed);
  button("Back", () => { stop(); go(seen.value - 1); });
  button("Next", () => { stop(); go(seen.value + 1); });
  const play = button("Play", () => (timer ? stop() : begin()));
  let timer = null;

  order.set(numbers.orders.map((one) => [one.name, one.label]), numbers.orders[0].name);
  block.set(numbers.blocks.map((size) => [size, size]), numbers.first);
  fit();

  function keys() { return numbers.orders.find((one) => one.name === order.value); }
  function count() { return keys().scores.length / block.value; }
  function fit() {
    seen.range(1, count());
    seen.value = Math.min(2, count());
  }
  function go(place) {
    seen.value = Math.max(1, Math.min(count(), place));
    redraw();
  }
  function begin() {
    result.attr("aria-live", "off"); // each step by hand is said
    play.text("Pause");
    go(seen.value === count() ? 1 : seen.value + 1);
    timer = d3.interval(() => (seen.value === count() ? stop() : go(seen.value + 1)), STEP_MS);
  }
  function stop() {
    timer?.stop();
    timer = null;
    play.text("Play");
    result.attr("aria-live", "polite");
  }
  const minus = (number) => String(number).replace("-", "−");
  const divided = ([sum, ...output]) => output.map((one) => fixed(one / sum)).join(", ");

  function say(steps, now, scores) {
    const size = +block.value;
    const mine = scores.slice((seen.value - 1) * size, seen.value * size).map(minus).join(", ");
    const factor = value("factor", now.factor, fixed(now.factor));
    const sum = value("sum", now.now[0], fixed(now.now[0]));
    const m = value("largest", now.m, minus(now.m));
    const what = now.was === null
      ? `These are the first, so m = ${m} and l = ${sum}.`
      : now.was === now.m
        ? `None is above m = ${m}, so the factor is ${factor} and nothing is rescaled; l becomes ${sum}.`
        : `m rises from ${minus(now.was)} to ${m}, so sum and output are multiplied by
          e<sup>−${now.m - now.was}</sup> = <strong>${factor}</strong>:
          l = ${fixed(now.before[0])} × ${fixed(now.factor)} + ${fixed(now.now[0] - now.kept[0])} = ${sum}.`;
    const end = seen.value === count()
      ? `<strong>That is exact attention</strong> over all keys.`
      : `Over all keys it will be ${divided(steps.at(-1).now)}.`;
    result.html(`Block ${seen.value} has the scores ${mine}. ${what} The output divided by l is
      ${value("output", now.now[1] / now.now[0], divided(now.now))}. ${end}`);
  }

  return (width) => {
    const { scores, runs } = keys();
    const steps = runs[block.value];
    const now = steps[seen.value - 1];
    say(steps, now, scores);

    const size = +block.value;
    const edge = { left: 34, right: 14 };
    const x = d3.scaleLinear([0, scores.length], [edge.left, width - edge.right]);
    const y = d3.scaleLinear([-1, 7], [150, 12]);
    svg.attr("height", 356);
    svg.append("g").attr("class", "axes").attr("transform", `translate(${edge.left},0)`)
      .call(d3.axisLeft(y).tickValues([0, 2, 4, 6]));
    scores.forEach((score, place) => {
      const mine = Math.floor(place / size) + 1;
      const kind = mine > seen.value ? "unseen" : mine === seen.value ? "current" : "seen";
      svg.append("rect").attr("class", `score ${kind}`).attr("x", x(place + 0.1)).attr("width", x(0.8) - x(0))
        .attr("y", Math.min(y(score), y(0))).attr("height", Math.max(1, Math.abs(y(score) - y(0))));
    });
    svg.append("line").attr("class", "largest").attr("x1", x(0)).attr("x2", x(seen.value * size))
      .attr("y1", y(now.m)).attr("y2", y(now.m));
    svg.append("text").attr("class", "note").attr("x", x(0) + 4).attr("y", y(now.m) - 6).text(`m = ${minus(now.m)}`);
    svg.append("text").attr("class", "axis-name").attr("x", (x(0) + x(scores.length)) / 2).attr("y", 170)
      .attr("text-anchor", "middle").text("scores, in the order of the sweep");

    const most = d3.max(steps, (step) => d3.max([step.before[0], step.now[0]]));
    const along = d3.scaleLinear([0, most], [edge.left, width - edge.right]);
    ["l", "o₁", "o₂", "o₃"].forEach((name, k) => {
      const top = 186 + 34 * k;
      const bar = (kind, from, to, at, high) => svg.append("rect").attr("class", `gathered ${kind}`)
        .attr("x", along(from)).attr("width", Math.max(0, along(to) - along(from))).attr("y", at).attr("height", high);
      svg.append("text").attr("class", "note").attr("x", edge.left - 8).attr("y", top + 17).attr("text-anchor", "end").text(name);
      bar("before", 0, now.before[k], top, 9);
      bar("kept", 0, now.kept[k], top + 12, 12);
      bar("added", now.kept[k], now.now[k], top + 12, 12);
    });
    svg.append("g").attr("class", "axes").attr("transform", "translate(0,324)").call(d3.axisBottom(along).ticks(5));
  };
});
