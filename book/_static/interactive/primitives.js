// The explorer of primitives: the operations of a layer by unit, instructions at a width, and times at a chip's peaks.
"use strict";

courseFigure.start("primitives", "Bars: time of each unit if it runs at its peak. Below: the steps of the layer, with their pattern.",
({ controls, svg, result }, numbers, redraw) => {
  const { amount, choice, number, plain, value } = courseFigure;
  const whole = d3.format(",");
  const layer = choice(controls, "Layer", () => { askSizes(); redraw(); });
  const chip = choice(controls, "Chip", redraw);
  const width = choice(controls, "One instruction works on", redraw);
  layer.set(Object.keys(numbers.layers).map((name) => [name, name]), numbers.first.layer);
  chip.set(Object.keys(numbers.chips).map((name) => [name, name]), numbers.first.chip);
  width.set(numbers.widths, numbers.first.width);

  // A field for each size of the layer. A size that was typed is kept for the next layer that has it.
  const sizes = {};
  function askSizes() {
    controls.selectAll(".size").remove();
    for (const name of numbers.layers[layer.value].sizes) {
      const text = name === "width" && layer.value.startsWith("attention") ? "head width" : name;
      const before = sizes[name] ? sizes[name].box.select("input").property("value") : numbers.sizes[name];
      sizes[name] = number(controls, text, before, () => [1, numbers.largest], redraw);
      sizes[name].box.classed("size", true);
    }
  }
  askSizes();

  const count = (step) => step.each * step.over.reduce((product, name) => product * sizes[name].value, 1);
  const noun = { matrix: "multiply-adds", vector: "operations", special: "results", memory: "loads" };

  function say(units, times) {
    const wide = Number(width.value);
    const arithmetic = d3.sum(Object.keys(times), (unit) => units[unit]);
    const issued = d3.sum(Object.keys(units), (unit) => Math.ceil(units[unit] / wide));
    const all = d3.sum(Object.values(units));
    const spelled = numbers.widths.find(([number]) => number === wide)[1];
    const counted = `On vector units alone, this is at least ${value("scalar", all, whole(all))} instructions one at a time${wide === 1
      ? "" : `, and ${value("issued", issued, whole(issued))} with ${spelled} each`}. Addresses and loops come on top.`;
    if (!arithmetic) {
      result.html(`${counted} There is no arithmetic at all: <strong class="limit">the memory is the limit</strong>.`);
      return;
    }
    const slowest = d3.greatest(Object.keys(times), (unit) => times[unit]);
    const share = times.matrix && times.special
      ? ` The special functions need ${value("share", times.special / times.matrix,
          `${plain(times.special / times.matrix)} times`)} as long as the products.`
      : "";
    result.html(`${counted} Busiest: <strong class="limit">${numbers.names[slowest]}</strong>, with
      ${value("longest", times[slowest], amount(times[slowest], "s"))}.${share} The memory may take longer than all units.`);
  }

  return (room) => {
    const { wrong } = numbers.layers[layer.value].sizes.map((name) => sizes[name]).find((one) => one.wrong) ?? {};
    if (wrong) {
      result.html(`<strong class="limit wrong"></strong>`).select(".wrong").text(wrong);
      svg.attr("height", 0);
      return;
    }
    const { steps } = numbers.layers[layer.value];
    const units = Object.fromEntries(Object.keys(numbers.names).map((unit) =>
      [unit, d3.sum(steps.filter((step) => step.unit === unit), count)]));
    const rates = numbers.chips[chip.value];
    const times = Object.fromEntries(Object.keys(rates).filter((unit) => units[unit]).map((unit) => [unit, units[unit] / rates[unit]]));
    say(units, times);

    const edge = 8;
    const long = d3.scaleLinear([0, d3.max(Object.values(times)) || 1], [0, room - 2 * edge]);
    const slowest = d3.greatest(Object.keys(times), (unit) => times[unit]);
    let y = 18;
    for (const unit of Object.keys(units).filter((one) => units[one])) {
      const time = unit in times ? `: ${amount(times[unit], "s")}` : "";
      svg.append("text").attr("x", edge).attr("y", y)
        .text(`${numbers.names[unit]}, ${d3.format(".3~s")(units[unit])} ${noun[unit]}${time}`);
      if (unit in times) {
        svg.append("rect").attr("class", unit === slowest ? "allows least" : "allows").attr("x", edge).attr("y", y + 6)
          .attr("width", Math.max(1, long(times[unit]))).attr("height", 12);
      }
      y += 40;
    }
    for (const step of steps) {
      svg.append("text").attr("class", "axis-name").attr("x", edge).attr("y", y)
        .text(`${step.what}: ${d3.format(".3~s")(count(step))}, ${step.pattern}`);
      y += 20;
    }
    svg.attr("height", y);
  };
});
