// The player of dataflows: step by step, which numbers of a small convolution are used, which stay, and what has moved.
"use strict";

courseFigure.start("dataflow", "Filled squares are used in this step; a thick frame marks what stayed near since the step " +
  "before, so it is not fetched. The bars count accesses to the far memory so far.",
({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, value } = courseFigure;
  const STEP_MS = 220;
  const PARTS = ["weights", "inputs", "sums"];

  const chosen = choice(controls, "Dataflow", () => { stop(); take(); redraw(); });
  chosen.set(Object.entries(numbers.names), "ws");
  const walk = () => numbers.walks[chosen.value];
  const step = slider(controls, "Step", 1, (place) => `${place} of ${walk().steps.length}`, () => { stop(); redraw(); });
  const buttons = controls.append("div").attr("class", "buttons");
  const button = (text, pressed) => buttons.append("button").attr("type", "button").text(text).on("click", pressed);
  button("Back", () => { stop(); go(step.value - 1); });
  button("Next", () => { stop(); go(step.value + 1); });
  const play = button("Play", () => (timer ? stop() : begin()));
  let timer = null;
  take();

  function take() {
    step.range(1, walk().steps.length);
    step.value = 1;
  }
  function go(place) {
    step.value = Math.max(1, Math.min(walk().steps.length, place));
    redraw();
  }
  function begin() {
    result.attr("aria-live", "off"); // nobody can listen that fast; each step by hand is said
    play.text("Pause");
    const pause = STEP_MS * (chosen.value === "rs" ? 4 : 1);
    go(step.value === walk().steps.length ? 1 : step.value + 1);
    timer = d3.interval(() => (step.value === walk().steps.length ? stop() : go(step.value + 1)), pause);
  }
  function stop() {
    timer?.stop();
    timer = null;
    play.text("Play");
    result.attr("aria-live", "polite");
  }

  // What is used in the step, by operand, and what stayed near since the step before. One multiplier keeps what it uses
  // again. Elements that keep rows hold their weights, the inputs from the window's first column on, and their sums.
  function used() {
    const rows = chosen.value === "rs";
    const uses = walk().steps[step.value - 1];
    const before = walk().steps.slice(rows ? 0 : Math.max(0, step.value - 2), step.value - 1).flat();
    const window = uses[0][2] % numbers.sides.sums;
    return PARTS.map((part, k) => {
      const now = new Set(uses.map((use) => use[k]));
      const known = [...new Set(before.map((use) => use[k]))];
      const column = (one) => one % numbers.sides[part];
      const held = rows ? (one) => part === "weights" || column(one) >= window : (one) => now.has(one);
      return { now, stayed: new Set(known.filter(held)) };
    });
  }

  function say() {
    const at = walk().counts[step.value - 1];
    const products = d3.sum(walk().steps.slice(0, step.value), (uses) => uses.length);
    const passed = walk().passed[step.value - 1];
    result.html(`<strong>${numbers.names[chosen.value]}</strong>, ${value("products", products, products)}
      product${products > 1 ? "s" : ""} done. Accesses so far: ${PARTS.map((part, k) =>
      `${value(part, at[k], at[k])} of ${part}`).join(", ")}, together
      <strong>${value("total", d3.sum(at), d3.sum(at))}</strong>.${passed ? ` Moves inside the array:
      ${value("passed", passed, passed)}.` : ""}`);
  }

  return (width) => {
    say();
    const sides = PARTS.map((part) => numbers.sides[part]);
    const gap = Math.max(14, Math.min(40, width / 16));
    const cell = Math.min(30, (width - 2 * gap - 4) / d3.sum(sides));
    const top = 24;
    const tall = cell * d3.max(sides);
    const marks = used();
    let left = (width - cell * d3.sum(sides) - 2 * gap) / 2;
    PARTS.forEach((part, k) => {
      const side = sides[k];
      const above = top + (tall - side * cell) / 2;
      svg.append("text").attr("class", "axis-name").attr("x", left + side * cell / 2).attr("y", above - 7)
        .attr("text-anchor", "middle").text(part);
      for (const one of d3.range(side * side)) {
        const now = marks[k].now.has(one);
        const stayed = marks[k].stayed.has(one);
        svg.append("rect").attr("class", `operand ${part}${now ? " used" : ""}${stayed ? " stayed" : ""}`)
          .attr("x", left + cell * (one % side) + 2).attr("y", above + cell * Math.floor(one / side) + 2)
          .attr("width", cell - 4).attr("height", cell - 4);
      }
      left += side * cell + gap;
    });

    const at = walk().counts[step.value - 1];
    const most = d3.max(Object.values(numbers.walks), (one) => d3.max(one.counts.at(-1)));
    const first = top + tall + 20;
    const x = d3.scaleLinear([0, most], [66, width - 40]);
    PARTS.forEach((part, k) => {
      const y = first + 26 * k;
      svg.append("text").attr("class", "axis-name").attr("x", 58).attr("y", y + 9).attr("dy", "0.35em")
        .attr("text-anchor", "end").text(part);
      svg.append("rect").attr("class", `moved ${part}`).attr("x", x(0)).attr("y", y)
        .attr("width", x(at[k]) - x(0)).attr("height", 18);
      svg.append("text").attr("class", "axis-name").attr("x", x(at[k]) + 6).attr("y", y + 9).attr("dy", "0.35em")
        .text(at[k]);
    });
    svg.attr("height", first + 26 * 3);
  };
});
