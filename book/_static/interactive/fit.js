// The calculator of memory: what a job needs, in parts, against the memory of a chip, and the largest batch that fits.
"use strict";

courseFigure.start("fit", "blue: weights · orange: gradients and optimizer · green: activations · gray: KV cache · dashed: " +
  "the chip's memory", ({ controls, svg, result }, numbers, redraw) => {
  const { amount, choice, nextId, plain, value } = courseFigure;
  const PARTS = ["weights", "gradients and optimizer", "activations", "KV cache"];
  const chip = choice(controls, "Chip", redraw);
  const model = choice(controls, "Model", () => { offer(); redraw(); });
  const job = choice(controls, "Job", redraw, true);
  const theModel = () => numbers.models.find((one) => one.id === model.value);

  // A whole number that is typed; one outside the range stays there, and wrong() says what is allowed.
  function count(first) {
    const id = nextId();
    const field = controls.append("div").attr("class", "field");
    const label = field.append("label").attr("for", id);
    const typed = field.append("input").attr("type", "number").attr("id", id).attr("min", 1).attr("step", 1)
      .property("value", first).on("input", redraw);
    const one = {
      most: 1,
      get value() { return Number(typed.property("value")); },
      set(text, most) {
        one.most = most;
        label.text(text);
        typed.attr("max", most);
      },
      show(shown) { field.attr("hidden", shown ? null : true); },
      wrong() {
        const bad = !(Number.isInteger(one.value) && one.value >= 1 && one.value <= one.most);
        typed.attr("aria-invalid", bad ? "true" : null);
        const entered = typed.property("value").trim() || "nothing";
        return bad ? `${label.text()}: ${entered} is not possible. Enter a whole number from 1 to ${plain(one.most)}.` : null;
      },
    };
    return one;
  }
  const batch = count(numbers.first.batch);
  const tokens = count(numbers.first.tokens);

  // The jobs and lengths that the chosen model knows.
  function offer() {
    const one = theModel();
    const known = numbers.jobs.filter(({ id }) => id in one.results);
    const kept = known.some(({ id }) => id === job.value) ? job.value : "none";
    job.set(known.map(({ id, name }) => [id, one.tokens || id !== "serve" ? name : "Answer"]), kept);
    batch.set(`Batch: ${one.unit} at once`, numbers.most);
    tokens.set("Tokens of each sequence", one.tokens || 1);
    tokens.show(one.tokens);
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
    const wrong = batch.wrong() || (theModel().tokens ? tokens.wrong() : null);
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
    const most = largest >= 1
      ? `The largest batch that fits is ${value("largest", largest, plain(largest))}.`
      : `${value("largest", 0, "No batch")} fits: use a larger chip, several chips, or a narrower format.`;
    result.html(`The job needs <strong>${value("total", total, sized(total))}</strong> of ${sized(room)}: ${listed}.
      ${verdict} ${most}`);

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
