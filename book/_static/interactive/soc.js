// The scheduler of a phone: each stage of a camera's image on a block that the reader chooses; time, energy and heat.
"use strict";

courseFigure.start("soc", "Each bar is a stage on its block, from when it starts to when it ends. The dashed line is when " +
  "the next image comes. A bar with a grayed end took longer than it would have with the memory to itself.",
({ controls, svg, result }, numbers, redraw) => {
  const { choice, value } = courseFigure;
  const { stages, units, clocks, body } = numbers;
  const digits = (count) => d3.format(`,.${count}f`);

  const places = stages.map((stage) => {
    const field = choice(controls, stage.name, redraw);
    field.set(units.map((unit) => [unit.name, unit.name]), "CPU");
    return field;
  });
  const clock = choice(controls, "Clock of all blocks", redraw);
  clock.set(clocks.map((one, k) => [k, `${Math.round(100 * one.share)}%`]), clocks.length - 1);
  const rate = choice(controls, "Images per second", redraw);
  rate.set(numbers.rates.map((one) => [one, one]), numbers.rates[0]);
  const others = choice(controls, "A language model also reads", redraw, true);
  others.set(numbers.others.map((one, k) => [k, one.name]), 0);
  const buttons = controls.append("div").attr("class", "buttons");
  const preset = (text, find) => buttons.append("button").attr("type", "button").text(text).on("click", () => {
    const found = find();
    stages.forEach((stage, k) => places[k].set(units.map((unit) => [unit.name, unit.name]), found.places[stage.name]));
    clock.set(clocks.map((one, k) => [k, `${Math.round(100 * one.share)}%`]), found.clock);
    redraw();
  });
  preset("Everything on the CPU", () => numbers.presets.cpu);
  preset("Fastest plan", () => numbers.presets.fastest);
  preset("Most frugal plan in time", () => numbers.presets.frugal[rate.value]);
  show(numbers.presets.fastest);

  function show(found) {
    stages.forEach((stage, k) => places[k].set(units.map((unit) => [unit.name, unit.name]), found.places[stage.name]));
  }

  // Max-min shares of the memory: the higher priority first, equals share what is left.
  function share(asked, capacity) {
    let left = capacity;
    for (const level of [...new Set(asked.map((one) => one.priority))].sort((a, b) => b - a)) {
      const waiting = asked.filter((one) => one.priority === level).sort((a, b) => a.demand - b.demand);
      waiting.forEach((one, k) => {
        one.granted = Math.min(one.demand, left / (waiting.length - k));
        left -= one.granted;
      });
    }
  }

  // As mlsys.soc.timeline does: a stage starts when its block is free and its inputs are there, and progresses at the
  // part of its demand that the memory grants.
  function run(chosen, speed, other) {
    const queues = new Map(units.map((unit) => [unit.name, stages.filter((stage) => chosen[stage.name] === unit.name)]));
    const bandwidth = new Map(units.map((unit) => [unit.name, Math.min(unit.bandwidth, numbers.memory)]));
    const ended = new Map();
    const running = new Map();
    const bars = [];
    let now = 0;
    const ready = (stage, unit) => Math.max(0, ...stage.after.map((name) =>
      (ended.has(name) ? ended.get(name).at + (ended.get(name).unit === unit ? 0 : numbers.handoff) : Infinity)));
    while (ended.size < stages.length) {
      for (const [unit, queue] of queues) {
        if (!running.has(unit) && queue.length && ready(queue[0], unit) <= now + 1e-15) {
          const stage = queue.shift();
          const alone = Math.max(stage.seconds[unit] / speed, stage.bytes / bandwidth.get(unit));
          running.set(unit, { stage, alone, start: now, left: 1, demand: stage.bytes / alone, priority: 0 });
        }
      }
      const asked = [...running.values()];
      share(other.rate ? [...asked, { demand: other.rate, priority: other.priority }] : asked, numbers.memory);
      let step = Infinity;
      for (const one of asked) {
        one.pace = one.demand ? one.granted / one.demand : 1;
        step = Math.min(step, one.left * one.alone / one.pace);
      }
      for (const [unit, queue] of queues) {
        if (queue.length && !running.has(unit)) {
          const time = ready(queue[0], unit);
          if (time > now && time < Infinity) step = Math.min(step, time - now);
        }
      }
      for (const one of asked) one.left -= step * one.pace / one.alone;
      now += step;
      for (const [unit, one] of [...running]) {
        if (one.left <= 1e-12) {
          running.delete(unit);
          ended.set(one.stage.name, { at: now, unit });
          bars.push({ stage: one.stage, unit, start: one.start, end: now, alone: one.alone });
        }
      }
    }
    return { bars, total: now };
  }

  function energy({ bars, total }, scale) {
    let joules = numbers.base * total;
    for (const bar of bars) {
      const unit = units.find((one) => one.name === bar.unit);
      joules += unit.dynamic * scale * bar.stage.seconds[bar.unit] + unit.static * (bar.end - bar.start)
        + bar.stage.bytes * numbers.perByte;
    }
    return joules;
  }

  return (width) => {
    const chosen = Object.fromEntries(stages.map((stage, k) => [stage.name, places[k].value]));
    const wrong = stages.find((stage) => !(chosen[stage.name] in stage.seconds));
    if (wrong) {
      const able = Object.keys(wrong.seconds);
      result.html(`The ${chosen[wrong.name]} does not run “${wrong.name}”: it has no ${wrong.kinds.join(" or ")}
        operations. Put this stage on the ${able.join(" or the ")}.`);
      svg.attr("height", 0);
      return;
    }
    const { share: speed, energy: scale } = clocks[+clock.value];
    const other = numbers.others[+others.value];
    const done = run(chosen, speed, other);
    const period = 1 / +rate.value;
    const until = energy(done, scale) + numbers.base * Math.max(0, period - done.total);
    const power = until / Math.max(period, done.total);
    const end = body.ambient + power * body.resistance;
    const minutes = end > body.limit
      ? body.constant * Math.log((end - body.ambient) / (end - body.limit)) / 60 : Infinity;
    const late = done.total > period;
    result.html(`One image takes ${value("time", done.total, `${digits(1)(1e3 * done.total)} ms`)}, ${late
      ? `<strong>too long</strong> for ${rate.value} images per second: ${digits(0)(1 / done.total)} are possible`
      : `in time for ${rate.value} images per second`}. Until the next image the chip needs
      ${value("energy", until, `${digits(1)(1e3 * until)} mJ`)}, which is a mean power of
      ${value("power", power, `${digits(2)(power)} W`)}. ${end > body.limit
      ? `The case reaches its limit of ${body.limit} °C after ${value("minutes", minutes, `${digits(0)(minutes)} minutes`)};
        then the clock must fall.`
      : `The case warms to ${value("case", end, `${digits(1)(end)} °C`)} in the end.`}`);

    const edge = { left: 46, right: 12, top: 8, bottom: 36 };
    const lane = 34;
    const height = edge.top + lane * units.length + edge.bottom;
    const x = d3.scaleLinear([0, 1e3 * Math.max(period, done.total)], [edge.left, width - edge.right]);
    const y = d3.scaleBand(units.map((unit) => unit.name), [edge.top, edge.top + lane * units.length]).padding(0.14);
    svg.attr("height", height);
    svg.append("g").attr("class", "axes").attr("transform", `translate(0,${height - edge.bottom})`)
      .call(d3.axisBottom(x).ticks(width < 420 ? 4 : 8));
    for (const unit of units) {
      svg.append("text").attr("class", "lane-name").attr("x", edge.left - 8).attr("y", y(unit.name) + y.bandwidth() / 2)
        .attr("dy", "0.35em").attr("text-anchor", "end").text(unit.name);
    }
    for (const bar of done.bars) {
      const [left, right] = [x(1e3 * bar.start), x(1e3 * bar.end)];
      const free = x(1e3 * Math.min(bar.end, bar.start + bar.alone));
      svg.append("rect").attr("class", `stage ${bar.unit}`).attr("x", left).attr("y", y(bar.unit))
        .attr("width", Math.max(1, right - left)).attr("height", y.bandwidth());
      if (right - free > 0.5) {
        svg.append("rect").attr("class", "held-up").attr("x", free).attr("y", y(bar.unit))
          .attr("width", right - free).attr("height", y.bandwidth());
      }
    }
    // A name stands in its bar where it fits; short bars are named together, behind the last of them.
    for (const unit of units) {
      const lane = done.bars.filter((bar) => bar.unit === unit.name).sort((one, other) => one.start - other.start);
      const middle = y(unit.name) + y.bandwidth() / 2;
      const write = (text, at, anchor) => svg.append("text").attr("class", "stage-name").attr("x", at).attr("y", middle)
        .attr("dy", "0.35em").attr("text-anchor", anchor).text(text);
      let short = [];
      lane.forEach((bar, k) => {
        const [left, right] = [x(1e3 * bar.start), x(1e3 * bar.end)];
        if (right - left > 8 * bar.stage.name.length) {
          write(bar.stage.name, (left + right) / 2, "middle");
          return;
        }
        short.push(bar.stage.name);
        const text = short.join(", ");
        const next = k + 1 < lane.length ? x(1e3 * lane[k + 1].start) : width;
        if (next - right > 7 * text.length + 8) {
          write(text, right + 5, "start");
          short = [];
        }
      });
      if (short.length) write(short.join(", "), x(1e3 * lane.at(-1).start) - 5, "end");
    }
    const next = x(1e3 * period);
    svg.append("line").attr("class", "deadline").attr("x1", next).attr("x2", next).attr("y1", edge.top)
      .attr("y2", height - edge.bottom);
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width - edge.right) / 2).attr("y", height - 4)
      .attr("text-anchor", "middle").text("ms since the image came");
  };
});
