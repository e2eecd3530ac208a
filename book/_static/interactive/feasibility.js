// The feasibility check: three gates for a decoding step, the one that binds, and which single change opens them all.
"use strict";

courseFigure.start("feasibility", "bars: need / limit of each gate, on a logarithmic axis · dashed: the limit · a bar beyond it is a shut gate",
  ({ controls, svg, result }, numbers, redraw) => {
  const { choice, number, plain, amount, value } = courseFigure;
  const { limits, first } = numbers;
  const model = choice(controls, "Model", () => { tokens.check(); redraw(); });
  const format = choice(controls, "Weights", redraw);
  const chip = choice(controls, "Chip", redraw);
  model.set(numbers.models.map((one) => [one.id, one.name]), first.model);
  format.set(numbers.formats.map((one) => [one.id, one.name]), first.dtype);
  chip.set(numbers.chips.map((one) => [one.id, one.name]), first.chip);
  const entry = (text, start, allowed, whole = true) => number(controls, text, start, allowed, redraw, whole);
  const chips = entry("Number of chips", first.chips, () => limits.chips);
  const batch = entry("Users at a time", first.batch, () => limits.batch);
  const tokens = entry("Tokens of each user", first.tokens, () => [1, numbers.models.find((one) => one.id === model.value).longest]);
  const deadline = entry("Deadline for a token, ms", first.deadline, () => limits.deadline, false);
  const bandwidth = entry("Reached bandwidth, %", first.bandwidth, () => limits.share, false);
  const compute = entry("Reached peak, %", first.compute, () => limits.share, false);
  const fields = { chips, batch, tokens, deadline, bandwidth, compute };

  const entered = () => ({
    model: numbers.models.find((one) => one.id === model.value),
    format: numbers.formats.find((one) => one.id === format.value),
    chip: numbers.chips.find((one) => one.id === chip.value),
    ...Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value])),
  });

  // Need and limit of each gate: bytes, then seconds.
  function gates({ model, format, chip, chips, batch, tokens, deadline, bandwidth, compute }) {
    const moved = model.params * format.bytes + batch * tokens * model.cache;
    return [
      { name: "memory", need: moved + batch * model.results, limit: chips * chip.bytes, unit: "B" },
      { name: "bandwidth", need: moved / (chips * chip.bandwidth * bandwidth / 100), limit: deadline / 1e3, unit: "s" },
      { name: "compute", need: batch * (model.flops + model.flops_each * tokens) / (chips * chip.peak * compute / 100),
        limit: deadline / 1e3, unit: "s" },
    ];
  }
  const load = (gate) => gate.need / gate.limit;
  const passes = (one) => gates(one).every((gate) => load(gate) <= 1);

  // The largest whole number from 1 to most for which all gates pass, or 0: they are shut beyond it.
  function largest(one, name, most) {
    let [open, shut] = [0, most + 1];
    while (shut - open > 1) {
      const middle = Math.floor((open + shut) / 2);
      if (passes({ ...one, [name]: middle })) open = middle;
      else shut = middle;
    }
    return open;
  }

  // Every single change that opens all gates, in words.
  function changes(one) {
    const found = [];
    const narrower = numbers.formats.find((other) => other.bytes < one.format.bytes && passes({ ...one, format: other }));
    if (narrower) found.push(`weights of ${value("format", narrower.bytes, narrower.name)}`);
    const users = largest(one, "batch", one.batch - 1);
    if (users) found.push(`at most ${value("batch", users, plain(users))} ${users === 1 ? "user" : "users"} at a time`);
    const short = largest(one, "tokens", one.tokens - 1);
    if (short) found.push(`at most ${value("tokens", short, plain(short))} tokens of each`);
    const more = d3.range(one.chips + 1, limits.chips[1] + 1).find((count) => passes({ ...one, chips: count }));
    if (more) found.push(`${value("chips", more, more)} chips, if they work as one`);
    const [memory, ...times] = gates(one);
    if (load(memory) <= 1) {
      const needed = 1e3 * d3.max(times, (gate) => gate.need);
      if (needed <= limits.deadline[1]) found.push(`a deadline of ${value("deadline", needed, amount(needed / 1e3, "s"))}`);
    }
    const others = numbers.chips.filter((other) => other !== one.chip && passes({ ...one, chip: other }));
    if (others.length) found.push(`another chip: ${others.map((other) => other.name).join(", ")}`);
    return found;
  }

  return (width) => {
    const wrong = Object.values(fields).map((field) => field.wrong).find((text) => text);
    if (wrong) {
      svg.attr("height", 0);
      result.html('<strong class="limit wrong"></strong>').select(".wrong").text(wrong);
      return;
    }
    const one = entered();
    const all = gates(one);
    const binding = d3.greatest(all, load);
    const said = all.map((gate) => `${gate.name} ${value(`${gate.name}-need`, gate.need, amount(gate.need, gate.unit))} of ` +
      `${amount(gate.limit, gate.unit)}${load(gate) > 1 ? " (shut)" : ""}`).join(", ");
    let then;
    if (passes(one)) {
      const users = largest(one, "batch", limits.batch[1]);
      then = `Up to ${value("most", users, plain(users))} users pass. The gates say what is impossible: measure before you promise.`;
    } else {
      const found = changes(one);
      const twice = passes({ ...one, chip: { ...one.chip, peak: 2 * one.chip.peak } });
      then = found.length ? `One of these changes opens all gates: ${found.join("; ")}.`
        : "No single change opens all gates: change two fields.";
      if (!twice) then += " Twice the peak would not.";
    }
    result.html(`<strong class="limit">${passes(one) ? "It passes" : "It does not pass"}</strong>: ${said}. The binding gate is
      <strong class="binding">${binding.name}</strong>, at ${value("load", load(binding), plain(load(binding)))} of its limit. ${then}`);

    const edge = { left: 84, right: 58 };
    const least = 0.001;
    const x = d3.scaleLog([least, Math.max(10, 2 * load(binding))], [edge.left, width - edge.right]).clamp(true);
    all.forEach((gate, place) => {
      const y = 6 + 36 * place;
      svg.append("text").attr("x", edge.left - 8).attr("y", y + 19).attr("text-anchor", "end").text(gate.name);
      svg.append("rect").attr("class", `held part${place}`).attr("x", edge.left).attr("y", y)
        .attr("width", Math.max(1, x(load(gate)) - edge.left)).attr("height", 28);
      svg.append("text").attr("x", x(load(gate)) + 6).attr("y", y + 19).text(plain(load(gate)));
    });
    svg.append("line").attr("class", "room").attr("x1", x(1)).attr("x2", x(1)).attr("y1", 0).attr("y2", 114);
    svg.append("g").attr("class", "axes").attr("transform", "translate(0,116)").call(d3.axisBottom(x).ticks(width < 480 ? 3 : 5, "~g"));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width - edge.right) / 2).attr("y", 154)
      .attr("text-anchor", "middle").text("need / limit");
    svg.attr("height", 160);
  };
});
