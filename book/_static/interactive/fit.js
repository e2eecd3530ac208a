// The calculator of memory: what a job needs, in parts, against the memory of a chip, and the largest batch that fits.
"use strict";

courseFigure.start("fit", "blue: weights · orange: gradients and optimizer · green: activations · violet: KV cache · dashed: " +
  "the chip's memory", ({ controls, svg, result }, numbers, redraw) => {
  const { amount, choice, number, plain, value } = courseFigure;
  const PARTS = ["weights", "gradients and optimizer", "activations", "KV cache"];
  const chip = choice(controls, "Chip", redraw);
  const model = choice(controls, "Model", () => { offer(); redraw(); });
  const job = choice(controls, "Job", redraw, true);
  const theModel = () => numbers.models.find((one) => one.id === model.value);

  const most = { batch: numbers.most, tokens: 1 };
  const batch = number(controls, "Batch", numbers.first.batch, () => [1, most.batch], redraw);
  const tokens = number(controls, "Tokens of each sequence", numbers.first.tokens, () => [1, most.tokens], redraw);

  // The jobs and lengths that the chosen model knows.
  function offer() {
    const one = theModel();
    const known = numbers.jobs.filter(({ id }) => id in one.results);
    const kept = known.some(({ id }) => id === job.value) ? job.value : "none";
    job.set(known.map(({ id, name }) => [id, one.tokens || id !== "serve" ? name : "Answer"]), kept);
    batch.box.select("label").text(`Batch: ${one.unit} at once`);
    batch.check();
    most.tokens = one.tokens || 1;
    tokens.box.attr("hidden", one.tokens ? null : true);
    tokens.check();
  }
  chip.set(numbers.chips.map((one) => [one.id, one.name]), numbers.first.chip);
  model.set(numbers.models.map((one) => [one.id, one.name]), numbers.first.model);
  job.set(numbers.jobs.map((one) => [one.id, one.name]), numbers.first.job);
  offer();

  function need(many) {
    const one = theModel();
    const serve = job.value === "serve";
    const length = one.tokens ? tokens.value : 1;
    const [linear, square] = one.results[job.value];
    const results = many * (serve ? linear : linear * length + square * length ** 2);
    return [one.weight_size * one.params, serve ? 0 : numbers.adam * one.params, results, serve ? many * length * one.cache : 0];
  }
  const sized = (bytes) => amount(bytes, "B");

  return (width) => {
    const wrong = batch.wrong || (theModel().tokens ? tokens.wrong : null);
    if (wrong) {
      svg.attr("height", 0);
      result.html('<strong class="limit wrong"></strong>').select(".wrong").text(wrong);
      return;
    }
    const room = numbers.chips.find((one) => one.id === chip.value).bytes;
    const parts = need(batch.value);
    const total = d3.sum(parts);
    const fixed = d3.sum(need(0));
    const largest = Math.floor((room - fixed) / (d3.sum(need(1)) - fixed));
    const listed = parts.map((bytes, part) => `${PARTS[part]} ${value(`part${part}`, bytes, sized(bytes))}`)
      .filter((text, part) => parts[part] > 0).join(", ");
    const verdict = total <= room
      ? `It <strong class="limit">fits</strong>, and ${sized(room - total)} are left.`
      : `It <strong class="limit">does not fit</strong>: ${sized(total - room)} are missing.`;
    const batches = largest >= 1
      ? `The largest batch that fits is ${value("largest", largest, plain(largest))}.`
      : `${value("largest", 0, "No batch")} fits: use a larger chip, several chips, or a narrower format.`;
    result.html(`The job needs <strong>${value("total", total, sized(total))}</strong> of ${sized(room)}: ${listed}.
      ${verdict} ${batches}`);

    const edge = { left: 10, right: 16 };
    const x = d3.scaleLinear([0, 1.08 * Math.max(total, room)], [edge.left, width - edge.right]);
    let start = 0;
    for (const [part, bytes] of parts.entries()) {
      svg.append("rect").attr("class", `held part${part}`).attr("x", x(start)).attr("y", 14)
        .attr("width", x(start + bytes) - x(start)).attr("height", 40);
      start += bytes;
    }
    svg.append("line").attr("class", "room").attr("x1", x(room)).attr("x2", x(room)).attr("y1", 4).attr("y2", 66);
    svg.append("g").attr("class", "axes").attr("transform", "translate(0,66)")
      .call(d3.axisBottom(x).ticks(width < 480 ? 4 : 8).tickFormat((bytes) => plain(bytes / 1e9)));
    svg.append("text").attr("class", "axis-name").attr("x", width / 2).attr("y", 104).attr("text-anchor", "middle").text("GB");
    svg.attr("height", 110);
  };
});
