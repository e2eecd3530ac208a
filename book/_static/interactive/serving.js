// Decode by batch: what a step computes and moves, which roof limits its kernels, tokens per second and latency.
"use strict";

courseFigure.start("serving", "Curve: tokens per second, at most. Diamond: your batch, with dashes to both axes. Dotted: bandwidth over the cache of one " +
  "sequence. Dashed from side to side, if in range: peak over the FLOPs of a token. Shaded: more than the chip's memory holds.",
({ controls, svg, result }, numbers, redraw) => {
  const { amount, choice, number, plain, value } = courseFigure;
  const chip = choice(controls, "Chip", redraw);
  const model = choice(controls, "Model", () => { most.context = theModel().most; context.check(); redraw(); });
  const theChip = () => numbers.chips.find((one) => one.id === chip.value);
  const theModel = () => numbers.models.find((one) => one.id === model.value);
  chip.set(numbers.chips.map((one) => [one.id, one.name]), numbers.first.chip);
  model.set(numbers.models.map((one) => [one.id, one.name]), numbers.first.model);

  const most = { context: theModel().most };
  const batch = number(controls, "Sequences decoded together", numbers.first.batch, () => [1, numbers.most], redraw);
  const context = number(controls, "Tokens of context", numbers.first.context, () => [1, most.context], redraw);

  // Sums over the kernels of a pass: seconds, those of memory-bound kernels among them, FLOPs and bytes.
  function passed(kernels, work) {
    const { bandwidth, peaks } = theChip();
    const sums = { time: 0, waiting: 0, flops: 0, bytes: 0 };
    for (const kernel of kernels) {
      const [flops, bytes] = work(kernel);
      const computing = flops / peaks[kernel.engine];
      const moving = bytes / bandwidth;
      sums.time += kernel.count * Math.max(computing, moving);
      if (moving > computing) sums.waiting += kernel.count * moving;
      sums.flops += kernel.count * flops;
      sums.bytes += kernel.count * bytes;
    }
    return sums;
  }
  const step = (many, tokens) => passed(theModel().decode,
    ({ f0, f1, b0, b1, b2 }) => [many * (f0 + f1 * tokens), b0 + many * (b1 + b2 * tokens)]);
  const prompt = (tokens) => passed(theModel().prefill,
    ({ f1, f2, b0, b1 }) => [f1 * tokens + f2 * tokens ** 2, b0 + b1 * tokens]);

  function say(tokens, ceiling, largest) {
    const many = batch.value;
    const { name, weights, cache } = theModel();
    const { room } = theChip();
    const now = step(many, tokens);
    const share = now.waiting / now.time;
    const intensity = now.flops / now.bytes;
    const rate = many / now.time;
    const limit = share > 0.5 ? "memory is the limit" : "arithmetic is the limit";
    const need = weights + many * tokens * cache;
    const fit = largest < 1
      ? `<strong class="limit">The weights do not fit</strong>: ${amount(weights, "B")} of ${amount(room, "B")}.`
      : need > room
        ? `<strong class="limit">It does not fit</strong>: ${value("need", need, amount(need, "B"))} of ${amount(room, "B")}, and
           at most ${value("largest", largest, plain(largest))} sequences have room.`
        : `Weights and caches take ${value("need", need, amount(need, "B"))} of ${amount(room, "B")}; up to
           ${value("largest", largest, plain(largest))} sequences have room.`;
    result.html(`A step of ${name} has ${value("intensity", intensity, plain(intensity))} FLOP per byte, and
      <strong class="limit">${limit}</strong> for ${value("share", share, plain(100 * (share > 0.5 ? share : 1 - share)))}% of its time.
      It takes ${value("step", now.time, amount(now.time, "s"))} or more, so each sequence gets at most
      ${plain(1 / now.time)} tokens per second, and all together <strong>${value("rate", rate, plain(rate))}</strong>,
      ${plain(100 * rate / ceiling)}% of what their caches allow. Reading a prompt of that length takes
      ${value("prefill", prompt(tokens).time, amount(prompt(tokens).time, "s"))} or more. ${fit}`);
  }

  return (width) => {
    const wrong = batch.wrong || context.wrong;
    if (wrong) {
      svg.attr("height", 0);
      result.html('<strong class="limit wrong"></strong>').select(".wrong").text(wrong);
      return;
    }
    const tokens = context.value;
    const { weights, cache } = theModel();
    const { bandwidth, peaks, room } = theChip();
    const ceiling = bandwidth / (tokens * cache);
    const far = step(numbers.most, tokens);
    const computed = peaks.tensor * numbers.most / far.flops;
    const largest = Math.floor((room - weights) / (tokens * cache));
    say(tokens, ceiling, largest);

    const height = Math.round(Math.min(360, Math.max(260, 0.55 * width)));
    const edge = { left: 76, right: 18, top: 14, bottom: 46 };
    const floor = height - edge.bottom;
    const rate = (many) => many / step(many, tokens).time;
    const x = d3.scaleLog([1, numbers.most], [edge.left, width - edge.right]);
    const y = d3.scaleLog([rate(1) / 1.5, 2.5 * Math.max(rate(numbers.most), Math.min(ceiling, computed))], [floor, edge.top]);
    svg.attr("height", height);

    if (largest < numbers.most) {
      const from = x(Math.max(1, largest + 0.5));
      svg.append("rect").attr("class", "memory-side").attr("x", from).attr("y", edge.top)
        .attr("width", width - edge.right - from).attr("height", floor - edge.top);
    }
    const ticks = (scale) => scale.ticks().filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
    const axes = svg.append("g").attr("class", "axes");
    axes.append("g").attr("transform", `translate(0,${floor})`)
      .call(d3.axisBottom(x).tickValues(ticks(x)).tickFormat(d3.format(",")));
    axes.append("g").attr("transform", `translate(${edge.left},0)`)
      .call(d3.axisLeft(y).tickValues(y.ticks(6).filter((tick) => /^[125]/.test(tick.toPrecision(1)))).tickFormat(plain));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width) / 2).attr("y", height - 6)
      .attr("text-anchor", "middle").text("sequences decoded together");
    svg.append("text").attr("class", "axis-name").attr("transform", `translate(12,${(edge.top + floor) / 2}) rotate(-90)`)
      .attr("text-anchor", "middle").text("tokens per second, at most");

    const [low, high] = y.domain();
    const level = (kind, at, text) => {
      if (at < low || at > high) return;
      svg.append("line").attr("class", kind).attr("x1", edge.left).attr("x2", width - edge.right).attr("y1", y(at)).attr("y2", y(at));
      svg.append("text").attr("class", "note").attr("x", edge.left + 6).attr("y", y(at) - 5).text(text);
    };
    level("bound", ceiling, "bandwidth over cache");
    level("roof other", computed, "peak over FLOPs");
    const places = d3.range(0, Math.log2(numbers.most) + 0.01, 0.25).map((power) => 2 ** power);
    svg.append("path").attr("class", "curve").attr("d", d3.line()(places.map((many) => [x(many), y(rate(many))])));
    const at = [x(batch.value), y(rate(batch.value))];
    svg.append("path").attr("class", "drop").attr("d", `M${at[0]},${floor}V${at[1]}H${edge.left}`);
    svg.append("path").attr("class", "chosen").attr("transform", `translate(${at})`).attr("d", d3.symbol(d3.symbolDiamond, 150)());
  };
});
