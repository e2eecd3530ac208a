// A tensor's journey: for each memory, the time to read a tensor of a size; flat while the latency rules, then rising.
"use strict";

courseFigure.start("journey", "A line for each memory, up to its size. It is flat while the latency rules. The ring is " +
  "where latency and transfer take equally long. Dots: your tensor.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, judged, nextId, amount, plain, value } = courseFigure;
  const LEAST = 1;
  const chip = choice(controls, "Chip", () => { take(); redraw(); });
  const theChip = () => numbers.chips.find((one) => one.id === chip.value);
  const most = () => theChip().levels.at(-1).capacity;

  // The size, by slider or typed.
  const text = "Size of the tensor, bytes";
  const id = nextId();
  const field = controls.append("div").attr("class", "field wide");
  const label = field.append("label").attr("for", id).text(text);
  const row = field.append("div").attr("class", "slide");
  const slide = row.append("input").attr("type", "range").attr("aria-label", `${text}, as a slider`)
    .attr("min", 0).attr("max", 100).attr("step", 1);
  const typed = row.append("input").attr("type", "number").attr("id", id).property("value", numbers.first.bytes);
  const entered = judged(typed, label, () => [LEAST, most()]);
  const rounded = (bytes) => +d3.format(".2r")(bytes);
  const sizeAt = (place) => rounded(Math.pow(most(), place / 100));
  function take() {
    entered.check();
    slide.property("value", Math.round((100 * Math.log(entered.value)) / Math.log(most())))
      .attr("aria-valuetext", amount(entered.value, "B"));
  }
  slide.on("input", () => {
    typed.property("value", Math.min(most(), sizeAt(slide.property("value"))));
    take();
    redraw();
  });
  typed.on("input", () => { take(); redraw(); });
  chip.set(numbers.chips.map((one) => [one.id, one.name]), numbers.first.chip);
  take();

  const seconds = (level, bytes) => level.latency + bytes / level.bandwidth;
  const bend = (level) => level.latency * level.bandwidth;
  const joules = (level) => 8 * entered.value * level.energy;

  function say(levels) {
    if (entered.wrong) {
      const shown = typed.property("value").trim() || "Nothing";
      result.html(`<strong class="limit wrong"></strong>`).select(".wrong").text(`${shown} is not possible. Enter a whole ` +
        `number of bytes from ${LEAST} to ${d3.format(",")(most())}, the size of this chip's device memory.`);
      return;
    }
    const size = entered.value;
    const near = levels.find((one) => size <= one.capacity);
    const far = levels.at(-1);
    const needed = bend(far);
    const rules = size < needed ? "latency" : "bandwidth";
    result.html(`${amount(size, "B")} fit the <strong class="nearest">${near.name}</strong>, and reading them there
      takes ${value("from-near", seconds(near, size), amount(seconds(near, size), "s"))} and
      ${value("near-energy", joules(near), amount(joules(near), "J"))}. From device memory it takes
      ${amount(far.latency, "s")} of latency and ${amount(size / far.bandwidth, "s")} of transfer, together
      ${value("from-far", seconds(far, size), amount(seconds(far, size), "s"))}, and
      ${value("far-energy", joules(far), amount(joules(far), "J"))}: the <strong class="limit">${rules}</strong> rules.
      To keep device memory busy, ${value("flight", needed, amount(needed, "B"))} must be in flight; your tensor is
      ${size < needed ? `${plain((100 * size) / needed)}% of` : `${plain(size / needed)} times`} that.`);
  }

  return (width) => {
    const { levels } = theChip();
    const size = entered.value;
    say(levels);
    const height = Math.round(Math.min(380, Math.max(330, 0.55 * width)));
    const edge = { left: 58, right: 26, top: 10, bottom: 44 };
    const x = d3.scaleLog([1, 1e11], [edge.left, width - edge.right]);
    const y = d3.scaleLog([1e-8, 1e-1], [height - edge.bottom, edge.top]);
    const few = width < 480;
    svg.attr("height", height);
    const axes = svg.append("g").attr("class", "axes");
    axes.append("g").attr("transform", `translate(0,${height - edge.bottom})`)
      .call(d3.axisBottom(x).tickValues(few ? [1, 1e3, 1e6, 1e9] : [1, 1e3, 1e6, 1e9, 1e11])
        .tickFormat((one) => amount(one, "B").replace(/\.0+/, "")));
    axes.append("g").attr("transform", `translate(${edge.left},0)`)
      .call(d3.axisLeft(y).tickValues([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
        .tickFormat((one) => amount(one, "s").replace(/\.0+/, "")));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width) / 2).attr("y", height - 6)
      .attr("text-anchor", "middle").text("size of the tensor");
    svg.append("line").attr("class", "drop").attr("x1", x(size)).attr("x2", x(size))
      .attr("y1", edge.top).attr("y2", height - edge.bottom);
    const line = d3.line((bytes) => x(bytes), (bytes) => 0);
    for (const [place, level] of levels.entries()) {
      const tone = ["C", "B", "A"][place];
      const ends = d3.range(0, 101).map((step) => Math.pow(level.capacity, step / 100));
      svg.append("path").attr("class", `level ${tone}`).attr("d", line.y((bytes) => y(seconds(level, bytes)))(ends));
      svg.append("text").attr("class", `wait ${tone}`).attr("x", x(1.5)).attr("y", y(level.latency) + (place === 1 ? 17 : -7)).text(few ? level.name.replace(" memories", "") : level.name);
      svg.append("circle").attr("class", `bend ${tone}`).attr("r", 6).attr("cx", x(bend(level)))
        .attr("cy", y(seconds(level, bend(level))));
      if (size <= level.capacity) {
        svg.append("circle").attr("class", `chosen`).attr("r", 5).attr("cx", x(size)).attr("cy", y(seconds(level, size)));
      }
    }
  };
});
