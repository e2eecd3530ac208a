// The memory planner: buffers are placed one by one, in an order that the reader chooses.
"use strict";

courseFigure.start("runtimes", "Each box is a buffer: as wide as its lifetime, as high as its size. " +
  "The orange box with the thick edge was placed last. The dotted line is the most that is live at once.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, value } = courseFigure;
  const { buffers, plans, peak } = numbers;
  const order = choice(controls, "Which buffer is placed first?", redraw, true);
  const step = slider(controls, "Buffers placed", 1, (count) => `${count} of ${buffers.length}`, redraw);
  order.set(plans.map((plan) => [plan.name, plan.label]), numbers.first);
  step.range(0, buffers.length);
  step.value = buffers.length;

  const top = (plan, place) => plan.offsets[place] + buffers[place].size;
  const height = (plan, places) => d3.max(places, (place) => top(plan, place)) ?? 0;

  function say(plan, placed) {
    const now = height(plan, placed);
    if (!placed.length) {
      result.html(`Nothing is placed yet. ${value("peak", peak, peak)} are live at once, so no plan needs less.`);
      return;
    }
    const last = placed.at(-1);
    const { name, lower, upper, size } = buffers[last];
    const where = `Buffer ${name} of size ${size} is live from step ${lower} up to ${upper} and is put at offset
      ${value("offset", plan.offsets[last], plan.offsets[last])}.`;
    const verdict = now > peak
      ? `That is <strong class="limit">${value("waste", now - peak, now - peak)} more than the ${peak}</strong> that are live at once.`
      : placed.length === buffers.length
        ? `<strong class="limit">No plan can need less</strong>: as much is live at once.`
        : `At most ${peak} are live at once.`;
    result.html(`${where} The plan needs <strong>${value("height", now, now)}</strong>${placed.length < buffers.length ? " so far" : ""}. ${verdict}`);
  }

  return (width) => {
    const plan = plans.find((one) => one.name === order.value);
    const placed = plan.order.slice(0, step.value);
    say(plan, placed);

    const high = Math.round(Math.min(360, Math.max(340, 0.55 * width)));
    const edge = { left: 44, right: 12, top: 12, bottom: 44 };
    const highest = d3.max(plans, (one) => height(one, one.order));
    const x = d3.scaleLinear([0, d3.max(buffers, (one) => one.upper)], [edge.left, width - edge.right]);
    const y = d3.scaleLinear([0, highest + 1], [high - edge.bottom, edge.top]);
    svg.attr("height", high);

    const axes = svg.append("g").attr("class", "axes");
    axes.append("g").attr("transform", `translate(0,${high - edge.bottom})`).call(d3.axisBottom(x).tickFormat(d3.format("d")));
    axes.append("g").attr("transform", `translate(${edge.left},0)`).call(d3.axisLeft(y).ticks(6));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width) / 2).attr("y", high - 6)
      .attr("text-anchor", "middle").text("time, steps");
    svg.append("text").attr("class", "axis-name").attr("text-anchor", "middle")
      .attr("transform", `translate(12,${(edge.top + high - edge.bottom) / 2}) rotate(-90)`).text("offset");

    for (const place of placed) {
      const { name, lower, upper, size } = buffers[place];
      svg.append("rect").attr("class", place === placed.at(-1) ? "buffer last" : "buffer")
        .attr("x", x(lower)).attr("width", x(upper) - x(lower))
        .attr("y", y(top(plan, place))).attr("height", y(0) - y(size));
      svg.append("text").attr("class", "buffer-name").attr("text-anchor", "middle")
        .attr("x", x((lower + upper) / 2)).attr("y", y(plan.offsets[place] + size / 2) + 5).text(name);
    }
    svg.append("line").attr("class", "live").attr("x1", edge.left).attr("x2", width - edge.right)
      .attr("y1", y(peak)).attr("y2", y(peak));
  };
});
