// The roofline explorer: one chip's roofs, and one operation or an intensity of the reader's own below them.
"use strict";

courseFigure.start("roofline", "Red diamond: your choice. Circles: the other operations of the list. " +
  "Nothing runs above the line.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, nextId, plain, amount, value } = courseFigure;
  const OWN = "own";
  const LOW = 0.1;
  const HIGH = 10000; // FLOP per byte, both ends of the drawing
  const UNITS = { tensor: "matrix units", vector: "vector units" };

  const chip = choice(controls, "Chip", () => { offerFormats(); pickOp(); redraw(); });
  const format = choice(controls, "Number format", () => { pickOp(); redraw(); });
  const op = choice(controls, "Operation", () => { pickOp(); redraw(); }, true);

  const id = nextId();
  const own = controls.append("div").attr("class", "field wide");
  own.append("label").attr("for", id).text("or your own: FLOP for each byte moved");
  const row = own.append("div").attr("class", "slide");
  const slide = row.append("input").attr("type", "range").attr("aria-label", "FLOP for each byte moved, as a slider");
  slide.attr("min", Math.log10(LOW)).attr("max", Math.log10(HIGH)).attr("step", 0.02);
  const typed = row.append("input").attr("type", "number").attr("id", id).attr("step", "any");
  typed.attr("min", LOW).attr("max", HIGH);
  let intensity = 1;
  const showIntensity = () => {
    slide.property("value", Math.log10(intensity)).attr("aria-valuetext", `${plain(intensity)} FLOP per byte`);
  };
  slide.on("input", () => {
    intensity = +(10 ** +slide.property("value")).toPrecision(3);
    typed.property("value", intensity);
    slide.attr("aria-valuetext", `${plain(intensity)} FLOP per byte`);
    toOwn();
  });
  typed.on("input", () => {
    const entered = +typed.property("value");
    if (entered >= LOW && entered <= HIGH) {
      intensity = entered;
      showIntensity();
      toOwn();
    }
  });

  const theChip = () => numbers.chips.find((one) => one.id === chip.value);
  const key = (roof) => `${roof.precision} ${roof.main}`;
  const theRoof = () => theChip().roofs.find((roof) => key(roof) === format.value);
  const opsNow = () => Object.entries(numbers.ops[theRoof().precision]);

  function offerFormats() {
    const roofs = theChip().roofs;
    const wanted = [format.value, `${numbers.first.precision} tensor`, "bf16 tensor", key(roofs[0])];
    const kept = wanted.find((name) => roofs.some((roof) => key(roof) === name));
    format.set(roofs.map((roof) => [key(roof), `${roof.precision}, ${UNITS[roof.main]}`]), kept);
  }
  function pickOp() {
    if (op.value !== OWN) {
      const { flops, bytes } = numbers.ops[theRoof().precision][op.value];
      intensity = flops / bytes;
      typed.property("value", +intensity.toPrecision(4));
      showIntensity();
    }
  }
  function toOwn() {
    op.set(options, OWN);
    redraw();
  }
  const options = [...Object.entries(numbers.ops[numbers.first.precision]).map(([name, one]) => [name, one.label]),
    [OWN, "an intensity of your own"]];
  chip.set(numbers.chips.map((one) => [one.id, one.name.split(" (")[0]]), numbers.first.chip);
  op.set(options, numbers.first.op);
  offerFormats();
  pickOp();

  // The lower of the two roofs; a chip whose vector units have no documented rate shows its memory's limit alone.
  const under = (roof, engine, at) => Math.min(roof.peaks[engine] ?? Infinity, roof.bandwidth * at);

  const counted = (roof) => roof.precision.startsWith("int") ? "OP" : "FLOP"; // integer operations are counted alike

  function say(roof, engine, label, work) {
    const peak = roof.peaks[engine];
    const reached = under(roof, engine, intensity);
    const unit = counted(roof);
    const rate = (number) => `${plain(number / 1e12)} T${unit}/s`;
    const most = `<strong>at most ${value("attainable", reached, rate(reached))}</strong>`;
    const does = `${label} ${value("intensity", intensity, plain(intensity))} ${unit} for each byte it moves.`;
    let verdict;
    if (peak === null) {
      verdict = `The documents of this chip give no rate for its vector units, where this runs; memory alone allows ${most}.`;
    } else {
      const ridge = `the ridge point of ${value("ridge", peak / roof.bandwidth, plain(peak / roof.bandwidth))}`;
      const runs = engine === roof.main ? "" : ` (this runs on the ${UNITS[engine]})`;
      verdict = intensity < peak / roof.bandwidth
        ? `That is below ${ridge}${runs}: <strong class="limit">memory is the limit</strong>. It cannot feed the arithmetic, which
           runs at ${most}, ${plain(100 * reached / peak)}% of its peak of ${value("peak", peak, rate(peak))}.`
        : `That is at or above ${ridge}${runs}: <strong class="limit">arithmetic is the limit</strong>. Memory feeds it fast
           enough for ${most}, its peak.`;
    }
    const times = work && peak !== null
      ? ` It takes ${value("time", work.flops / reached, amount(work.flops / reached, "s"))} or more: the arithmetic of
         ${amount(work.flops, unit)} alone ${amount(work.flops / peak, "s")}, moving ${amount(work.bytes, "B")} alone
         ${amount(work.bytes / roof.bandwidth, "s")}.`
      : "";
    result.html(`${does} ${verdict}${times}`);
  }

  return (width) => {
    const roof = theRoof();
    const work = op.value === OWN ? null : numbers.ops[roof.precision][op.value];
    const engine = work ? work.engine : roof.main;
    say(roof, engine, work ? `The ${work.label} does` : "Your operation does", work);

    const height = Math.round(Math.min(400, Math.max(280, 0.62 * width)));
    const edge = { left: 52, right: 26, top: 14, bottom: 46 };
    const rates = numbers.chips.flatMap((one) => one.roofs.flatMap((r) => [r.bandwidth * LOW, r.peaks[r.main]]));
    const x = d3.scaleLog([LOW, HIGH], [edge.left, width - edge.right]);
    const y = d3.scaleLog([d3.min(rates), 2 * d3.max(rates)], [height - edge.bottom, edge.top]);
    svg.attr("height", height);
    const floor = height - edge.bottom;

    const shade = (name, points) => svg.append("polygon").attr("class", name).attr("points", points.join(" "));
    const peak = roof.peaks[engine];
    const ridge = peak === null ? HIGH : Math.min(HIGH, peak / roof.bandwidth);
    const corner = [x(ridge), y(roof.bandwidth * ridge)];
    shade("memory-side", [[x(LOW), floor], [x(LOW), y(roof.bandwidth * LOW)], corner, [corner[0], floor]]);
    shade("compute-side", [[corner[0], floor], corner, [x(HIGH), corner[1]], [x(HIGH), floor]]);

    const ticks = (scale) => scale.ticks().filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
    const axes = svg.append("g").attr("class", "axes");
    axes.append("g").attr("transform", `translate(0,${floor})`)
      .call(d3.axisBottom(x).tickValues(ticks(x)).tickFormat(d3.format(",")));
    axes.append("g").attr("transform", `translate(${edge.left},0)`)
      .call(d3.axisLeft(y).tickValues(ticks(y)).tickFormat((rate) => plain(rate / 1e12)));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width) / 2).attr("y", height - 6)
      .attr("text-anchor", "middle").text(`${counted(roof)} for each byte moved`);
    svg.append("text").attr("class", "axis-name").attr("transform", `translate(12,${(edge.top + floor) / 2}) rotate(-90)`)
      .attr("text-anchor", "middle").text(`T${counted(roof)}/s, at most`);

    const line = (one) => d3.line()([LOW, (roof.peaks[one] ?? Infinity) / roof.bandwidth, HIGH]
      .filter((at) => at <= HIGH).map((at) => [x(at), y(under(roof, one, at))]));
    for (const one of new Set([roof.main, engine])) {
      svg.append("path").attr("class", one === engine ? "roof" : "roof other").attr("d", line(one));
      if (roof.peaks[one] !== null) svg.append("text").attr("class", "note").attr("x", x(HIGH)).attr("y", y(roof.peaks[one]) + 17)
        .attr("text-anchor", "end").text(UNITS[one]);
    }
    if (peak !== null) {
      svg.append("circle").attr("class", "ridge").attr("cx", corner[0]).attr("cy", corner[1]).attr("r", 5);
      svg.append("text").attr("class", "ridge-name").attr("x", corner[0] - 8).attr("y", corner[1] - 7)
        .attr("text-anchor", "end").text(`ridge point ${plain(peak / roof.bandwidth)}`);
    }
    for (const [name, one] of opsNow()) {
      const at = one.flops / one.bytes;
      if (name === op.value || at < LOW || at > HIGH) continue;
      svg.append("circle").attr("class", "other-op").attr("r", 4).attr("cx", x(at)).attr("cy", y(under(roof, one.engine, at)))
        .append("title").text(one.label);
    }
    const at = [x(intensity), y(under(roof, engine, intensity))];
    svg.append("path").attr("class", "drop").attr("d", `M${at[0]},${floor}V${at[1]}H${edge.left}`);
    const half = (from, to) => Math.sqrt(from * to);
    const sides = [["memory", half(LOW, ridge)], ["compute", half(ridge, HIGH)]].filter(([side]) => side === "memory" || peak !== null);
    for (const [side, middle] of sides) {
      const name = svg.append("text").attr("class", `side-name ${side}`).attr("text-anchor", "middle");
      [side === "memory" ? "memory" : "arithmetic", "is the limit"].forEach((word, place) => {
        name.append("tspan").attr("x", x(middle)).attr("y", floor - 26 + 16 * place).text(word);
      });
    }
    svg.append("path").attr("class", "chosen").attr("transform", `translate(${at})`).attr("d", d3.symbol(d3.symbolDiamond, 150)());
  };
});
