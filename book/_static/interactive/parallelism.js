// The calculator of plans: what a chip holds, what goes over which link, and the time of a training step.
"use strict";

courseFigure.start("parallelism", "Upper bar: what a chip holds; dashed: its memory. Lower bar: where the time of a step goes.",
({ controls, svg, result }, numbers, redraw) => {
  const { amount, choice, number, plain, value } = courseFigure;
  const { first, most, node } = numbers;
  const whole = (low, high) => () => [low, high];
  const model = choice(controls, "Model", redraw, true);
  const cluster = choice(controls, "Chips", redraw);
  const batch = number(controls, "Sequences of a step", first.batch, whole(1, most.batch), redraw);
  const data = number(controls, "Data groups", first.data, whole(1, most.data), redraw);
  const tensor = choice(controls, "Chips of a tensor group", redraw);
  const pipeline = number(controls, "Stages of the pipeline", first.pipeline, whole(1, most.pipeline), redraw);
  const groups = number(controls, "Groups of layers on a stage", first.interleaving, whole(1, most.interleaving), redraw);
  const microbatch = choice(controls, "Sequences of a microbatch", redraw);
  const again = choice(controls, "Computed again", redraw);
  const shared = choice(controls, "Shared by the data groups", redraw);
  const counts = (list) => list.map((n) => [n, n]);
  model.set(numbers.models.map((one) => [one.id, one.name]), first.model);
  cluster.set(numbers.clusters.map((one) => [one.id, one.name]), first.cluster);
  tensor.set(counts(numbers.tensor), first.tensor);
  microbatch.set(counts(numbers.microbatches), first.microbatch);
  again.set(numbers.recompute, first.recompute);
  shared.set(numbers.sharding, first.sharding);

  // The sentence that says why a plan is no plan, or null.
  function refused(m, plan) {
    const typed = [batch, data, pipeline, groups].find((one) => one.wrong);
    if (typed) return typed.wrong;
    const passed = plan.d * plan.b;
    if (plan.batch % passed) {
      return `A batch of ${plan.batch} does not divide among ${plan.d} data groups in microbatches of ${plan.b}: ` +
        `${plan.batch % passed} left over. Enter a multiple of ${passed}.`;
    }
    if (plan.v > 1 && plan.p === 1) return `${plan.v} groups of layers need a pipeline of at least 2 stages.`;
    if (plan.v > 1 && plan.m % plan.p) {
      return `${plan.m} microbatches do not divide among ${plan.p} stages, which several groups of layers need: ` +
        `${plan.m % plan.p} left over. Use 1 group, or sequences in multiples of ${passed * plan.p}.`;
    }
    if (m.layers % (plan.p * plan.v)) {
      const each = plan.v > 1 ? ` with ${plan.v} groups of layers each` : "";
      return `${m.layers} layers do not divide among ${plan.p} stages${each}: ${m.layers % (plan.p * plan.v)} left over. ` +
        `Stages times groups must divide ${m.layers}.`;
    }
    return null;
  }

  function held(m, plan) {
    const params = ((m.layers / plan.p) * m.block + m.embedding) / plan.t;
    const bytes = (each, from) => (each * params) / (plan.shared >= from ? plan.d : 1);
    const interleaved = plan.v > 1 ? 1 + (plan.p - 1) / (plan.p * plan.v) : 1;
    const place = numbers.recompute.findIndex(([id]) => id === plan.again);
    let kept = m.layers * interleaved * plan.b * m.kept[plan.t][place] * Math.min(1, plan.m / plan.p);
    if (plan.p === 1) kept += (m.ends * plan.b) / plan.t;
    const { weights, gradients, optimizer } = numbers.bytes;
    return { weights: bytes(weights, 3), gradients: bytes(gradients, 2), optimizer: bytes(optimizer, 1), activations: kept, params };
  }

  const half = (link, size, n) => (n === 1 ? 0 : link.start + (n - 1) * link.step + (((n - 1) / n) * size) / link.rate);
  const whole2 = (link, size, n) => (n === 1 ? 0 : 2 * half(link, size, n) - link.start);

  // Seconds of a step by their cause, and what of them goes over the links of a node and over those between nodes.
  function step(m, c, plan, params) {
    const [products, elementwise, selective, full, outProducts, outElementwise] = m.work[c.id][plan.t][plan.b];
    const joining = (n, apart) => (n * apart <= node ? "inside" : "between");
    const ring = (n, apart) => {  // between nodes, one for each chip of a node
      const joined = c[joining(n, apart)], together = Math.max(1, Math.floor(node / apart));
      if (joined === c.inside || together === 1) return joined;
      return { ...joined, rate: Math.min(together * joined.rate, c.inside.rate) };
    };
    const layers = m.layers / plan.p;
    const size = 2 * plan.b * m.tokens * m.width;
    const halves = 10 + (plan.again === "full" ? 4 : 0);
    const over = { inside: 0, between: 0 };
    const sends = plan.p === 1 ? 0 : 2 * plan.v * (c[joining(2, plan.t * plan.d)].sendStart
      + size / plan.t / c[joining(2, plan.t * plan.d)].sendRate);
    const middle = {
      products: layers * products,
      elementwise: layers * elementwise,
      repeated: layers * ({ none: 0, selective, full }[plan.again]),
      tensor: layers * halves * half(ring(plan.t, 1), size, plan.t),
      sends,
    };
    const outTensor = whole2(ring(plan.t, 1), size, plan.t);
    const link = ring(plan.d, plan.t);
    const { weights, gradients } = numbers.bytes;
    const gathers = plan.shared === 3 ? 2 * plan.m : 1;
    const summed = plan.d === 1 ? 0 : plan.shared === 0 ? whole2(link, gradients * params, plan.d)
      : half(link, gradients * params, plan.d) + gathers * half(link, weights * params, plan.d);
    const parts = {
      products: plan.m * (middle.products + outProducts),
      elementwise: plan.m * (middle.elementwise + outElementwise),
      repeated: plan.m * middle.repeated,
      tensor: plan.m * (middle.tensor + outTensor),
      sends: plan.m * sends,
      bubble: ((plan.p - 1) / plan.v) * d3.sum(Object.values(middle)),
      gradients: summed,
      optimizer: (numbers.traffic * params) / (plan.shared ? plan.d : 1) / c.bandwidth,
    };
    over[joining(plan.t, 1)] += parts.tensor;
    over[joining(2, plan.t * plan.d)] += parts.sends;
    over[joining(plan.d, plan.t)] += summed;
    return { parts, over };
  }

  const NAMES = {
    products: "products", elementwise: "element-wise work", repeated: "computing again", tensor: "sums within the blocks",
    sends: "sends between stages", bubble: "waiting for the pipeline", gradients: "sums of gradients", optimizer: "the optimizer",
  };
  const HELD = { weights: "weights", gradients: "gradients", optimizer: "optimizer", activations: "activations" };
  const seconds = (s) => (s >= 1e-3 ? `${plain(s)} s` : amount(s, "s"));
  const percent = (share) => `${d3.format(".0f")(100 * share)}%`;

  function bars(width, x0, y, title, sizes, names, scale) {
    svg.append("text").attr("class", "side-title").attr("x", x0).attr("y", y).text(title);
    let start = 0;
    const shown = Object.entries(sizes).filter(([, size]) => size > 0);
    shown.forEach(([name, size]) => {
      svg.append("rect").attr("class", `held part-${name}`).attr("x", scale(start)).attr("y", y + 8)
        .attr("width", Math.max(0.5, scale(start + size) - scale(start))).attr("height", 34);
      start += size;
    });
    let [left, line] = [x0, y + 60];
    for (const [name] of shown) {
      const box = svg.append("rect").attr("class", `held part-${name}`).attr("width", 11).attr("height", 11);
      const text = svg.append("text").attr("class", "legend").text(names[name]);
      const wide = 22 + text.node().getComputedTextLength() + 14;
      if (left + wide > width) [left, line] = [x0, line + 20];
      box.attr("x", left).attr("y", line - 10);
      text.attr("x", left + 16).attr("y", line);
      left += wide;
    }
    return line;
  }

  return (width) => {
    const m = numbers.models.find((one) => one.id === model.value);
    const c = numbers.clusters.find((one) => one.id === cluster.value);
    const plan = { batch: batch.value, d: data.value, t: +tensor.value, p: pipeline.value, v: groups.value,
      b: +microbatch.value, again: again.value, shared: +shared.value };
    plan.m = plan.batch / (plan.d * plan.b);
    const wrong = refused(m, plan);
    if (wrong) {
      svg.attr("height", 0);
      result.html('<strong class="limit wrong"></strong>').select(".wrong").text(wrong);
      return;
    }
    const chips = plan.d * plan.t * plan.p;
    const { params, ...sizes } = held(m, plan);
    const { parts, over } = step(m, c, plan, params);
    const [total, room] = [d3.sum(Object.values(sizes)), c.memory];
    const time = d3.sum(Object.values(parts));
    const share = (plan.batch * m.flops) / (chips * c.peak * time);
    const fits = total <= room ? `It <strong class="limit">fits</strong>.`
      : `It <strong class="limit">does not fit</strong>: ${amount(total - room, "B")} are missing.`;
    const losses = Object.entries(parts).filter(([name]) => name !== "products");
    const [worst, lost] = losses.reduce((a, b) => (b[1] > a[1] ? b : a));
    const limit = over.inside + over.between === 0 ? "Nothing goes over a link." : `${c.inside.name}, within the nodes, takes
      ${value("inside", over.inside, seconds(over.inside))} of it; ${c.between.name}, between them, takes
      ${value("between", over.between, seconds(over.between))}.`;
    result.html(`${value("chips", chips, plain(chips))} chips hold ${value("held", total, amount(total, "B"))} each, of
      ${amount(room, "B")}. ${fits} A step takes <strong>${value("time", time, seconds(time))}</strong>:
      ${value("rate", (plan.batch * m.tokens) / time, plain((plan.batch * m.tokens) / time))} tokens per second, and
      ${value("share", share, percent(share))} of all chips' peak goes into what the model needs. ${limit} Beside the products,
      ${value("worst", lost, NAMES[worst])} ${worst === "repeated" || !NAMES[worst].startsWith("s") ? "takes" : "take"} longest,
      ${percent(lost / time)} of the step.`);

    const edge = { left: 10, right: 16 };
    const x = d3.scaleLinear([0, 1.06 * Math.max(total, room)], [edge.left, width - edge.right]);
    const line = bars(width - edge.right, edge.left, 16, `A chip holds ${amount(total, "B")}`, sizes, HELD, x);
    svg.append("line").attr("class", "room").attr("x1", x(room)).attr("x2", x(room)).attr("y1", 18).attr("y2", 64);
    const y = d3.scaleLinear([0, time], [edge.left, width - edge.right]);
    const end = bars(width - edge.right, edge.left, line + 34, `A step takes ${seconds(time)}`, parts, NAMES, y);
    svg.attr("height", end + 14);
  };
});
