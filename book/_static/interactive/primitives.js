// The explorer of primitives: the operations of a layer by unit, instructions at a width, and times at a chip's peaks.
"use strict";

courseFigure.start("primitives", "Bars: time of each unit if it runs at its peak. Below: the steps of the layer, with their pattern.",
({ controls, svg, result }, numbers, redraw) => {
  const { amount, choice, nextId, plain, value } = courseFigure;
  const whole = d3.format(",");
  const layer = choice(controls, "Layer", () => { askSizes(); redraw(); });
  const chip = choice(controls, "Chip", redraw);
  const width = choice(controls, "One instruction works on", redraw);
  layer.set(Object.keys(numbers.layers).map((name) => [name, name]), numbers.first.layer);
  chip.set(Object.keys(numbers.chips).map((name) => [name, name]), numbers.first.chip);
  width.set(numbers.widths, numbers.first.width);

  // A field for each size of the layer. A size that was typed is kept for the next layer that has it.
  const typed = { ...numbers.sizes };
  function askSizes() {
    controls.selectAll(".size").remove();
    for (const name of numbers.layers[layer.value].sizes) {
      const id = nextId();
      const box = controls.append("div").attr("class", "field size");
      box.append("label").attr("for", id).text(name === "width" && layer.value.startsWith("attention") ? "head width" : name);
      box.append("input").attr("type", "number").attr("id", id).attr("min", 1).attr("max", numbers.largest)
        .attr("step", 1).property("value", typed[name])
        .on("input", function () { typed[name] = this.value; redraw(); });
    }
  }
  askSizes();

  function wrongSize() {
    for (const name of numbers.layers[layer.value].sizes) {
      const size = Number(typed[name]);
      if (String(typed[name]).trim() === "" || !Number.isInteger(size) || size < 1 || size > numbers.largest) {
        return `${name}: ${String(typed[name]).trim() === "" ? "nothing" : typed[name]} is not possible. Enter a whole
          number from 1 to ${whole(numbers.largest)}.`;
      }
    }
    return null;
  }

  const count = (step) => step.each * step.over.reduce((product, name) => product * Number(typed[name]), 1);
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
    const wrong = wrongSize();
    controls.selectAll(".size input").attr("aria-invalid", function () {
      const size = Number(this.value);
      return this.value !== "" && Number.isInteger(size) && size >= 1 && size <= numbers.largest ? null : "true";
    });
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
