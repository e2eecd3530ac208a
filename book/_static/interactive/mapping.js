// The player of loop orders: order by order, what a nest of five loops moves of each operand, and the best so far.
"use strict";

courseFigure.start("mapping", "Each bar is one order of the loops, and its height counts accesses, from below: blue weights, orange inputs, green sums. " +
  "The small mark on top is the order that is shown; the dashed line is what any order must move.",
({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, value } = courseFigure;
  const STEP_MS = 120;
  const COUNT = numbers.orders.length;
  const count = d3.format(",");
  const PARTS = ["weights", "inputs", "sums"];

  const held = choice(controls, "Sums that stay near", () => { stop(); redraw(); });
  held.set(numbers.held.map((sums, k) => [k, sums]), 0);
  const tried = slider(controls, "Orders tried", 1, (done) => `${done} of ${COUNT}`, () => { stop(); redraw(); });
  tried.range(1, COUNT);
  tried.value = COUNT;
  const buttons = controls.append("div").attr("class", "buttons");
  const button = (text, pressed) => buttons.append("button").attr("type", "button").text(text).on("click", pressed);
  button("Back", () => { stop(); go(tried.value - 1); });
  button("Next", () => { stop(); go(tried.value + 1); });
  const play = button("Play", () => (timer ? stop() : begin()));
  let timer = null;

  function go(place) {
    tried.value = Math.max(1, Math.min(COUNT, place));
    redraw();
  }
  function begin() {
    result.attr("aria-live", "off"); // nobody can listen that fast; each step by hand is said
    play.text("Pause");
    go(tried.value === COUNT ? 1 : tried.value + 1);
    timer = d3.interval(() => (tried.value === COUNT ? stop() : go(tried.value + 1)), STEP_MS);
  }
  function stop() {
    timer?.stop();
    timer = null;
    play.text("Play");
    result.attr("aria-live", "polite");
  }

  return (width) => {
    const seen = numbers.orders.slice(0, tried.value);
    const moved = (one) => one.moved[+held.value];
    const now = seen.at(-1);
    const totals = seen.map((one) => d3.sum(moved(one)));
    const best = d3.min(totals);
    const ties = totals.filter((total) => total === best).length;
    const first = seen[totals.indexOf(best)];
    const named = (order) => [...order].join(" ");
    result.html(`Order ${named(now.order)} moves ${PARTS.map((part, k) =>
      `${value(part, moved(now)[k], count(moved(now)[k]))} ${part}`).join(", ")}: together
      <strong>${value("total", totals.at(-1), count(totals.at(-1)))}</strong>. The best of ${seen.length} so far moves
      <strong>${value("best", best, count(best))}</strong>, first found in order ${named(first.order)}; orders that reach it:
      ${value("ties", ties, ties)}.`);

    const edge = { left: 58, right: 10, top: 14, bottom: 34 };
    const height = 250;
    const largest = d3.max(numbers.orders, (one) => d3.max(one.moved, (parts) => d3.sum(parts)));
    const x = d3.scaleLinear([0, COUNT], [edge.left, width - edge.right]);
    const y = d3.scaleLinear([0, largest], [height - edge.bottom, edge.top]);
    svg.attr("height", height);
    seen.forEach((one, place) => {
      let below = 0;
      moved(one).forEach((part, k) => {
        svg.append("rect").attr("class", `moved ${PARTS[k]}`).attr("x", x(place)).attr("y", y(below + part))
          .attr("width", Math.max(1, x(1) - x(0) - 0.3)).attr("height", y(below) - y(below + part));
        below += part;
      });
    });
    svg.append("rect").attr("class", "shown-order").attr("x", x(tried.value - 1) - 1).attr("y", y(totals.at(-1)) - 7)
      .attr("width", Math.max(3, x(1) - x(0) + 2)).attr("height", 5);
    svg.append("line").attr("class", "least").attr("x1", x(0)).attr("x2", x(COUNT))
      .attr("y1", y(numbers.least)).attr("y2", y(numbers.least));
    svg.append("g").attr("class", "axes").attr("transform", `translate(${edge.left},0)`)
      .call(d3.axisLeft(y).ticks(5).tickFormat(count));
    svg.append("text").attr("class", "axis-name").attr("x", (x(0) + x(COUNT)) / 2).attr("y", height - 10)
      .attr("text-anchor", "middle").text("orders, as they were tried");
  };
});
