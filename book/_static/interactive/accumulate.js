// One sum, three accumulators: the same products are added one by one in FP32, BF16 and FP16.
"use strict";

courseFigure.start("accumulate", "Blue: FP32. Orange, dashed: BF16. Green, dotted: FP16. Thin: the sum without rounding.",
  ({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, nextId, value } = courseFigure;
  const { round, holds, runningSums } = courseFormats;

  const kind = choice(controls, "Products", redraw, true);
  kind.set(Object.entries(numbers.kinds), numbers.first.kind);
  function factor(text, first) {
    const id = nextId();
    const field = controls.append("div").attr("class", "field");
    field.append("label").attr("for", id).text(text);
    const input = field.append("input").attr("type", "text").attr("inputmode", "decimal").attr("id", id)
      .attr("autocomplete", "off").on("input", redraw);
    input.property("value", first);
    return input;
  }
  const inputs = [factor("First factor", numbers.first.a), factor("Second factor", numbers.first.b)];
  const factors = choice(controls, "Format of the factors", redraw);
  factors.set(numbers.factors.map((name) => [name, numbers.formats[name].label]), numbers.first.factors);
  const terms = slider(controls, "How many products", 1, (place) => d3.format(",")(2 ** place), redraw);
  terms.range(0, numbers.longest);
  terms.value = numbers.first.terms;

  const digits = (x) => (Number.isFinite(x) ? d3.format(",.6~r")(x).replace("-", "−") : String(x).replace("-", "−").replace("Infinity", "∞"));

  function read(input) {
    const text = input.property("value").trim().replaceAll("−", "-");
    const fine = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Math.abs(Number(text)) <= numbers.largest;
    input.attr("aria-invalid", fine ? null : "true");
    return fine ? Number(text) : null;
  }

  function products(a, b) {
    const form = numbers.formats[factors.value];
    return d3.range(1, 2 ** terms.value + 1).map((number) => {
      const [u, v] = numbers.spread.map((step) => (number * step) % 1);
      const sizes = { same: [1, 1], positive: [u, v], signs: [2 * u - 1, v] }[kind.value];
      return round(form, a * sizes[0]) * round(form, b * sizes[1]);
    });
  }

  // After how many additions a sum has stopped growing although more is added; none for one that still changes.
  function stopped(sums, made) {
    const last = sums[sums.length - 1];
    const first = sums.indexOf(last);
    return made.slice(first + 1).some((product) => product !== 0) && sums.slice(first).every((one) => one === last)
      && sums.length - first > 8 ? first + 1 : null;
  }

  return (width) => {
    const [a, b] = inputs.map(read);
    const height = 300;
    svg.attr("height", height);
    if (a === null || b === null) {
      result.html(`<span class="limit">A factor must be a number from −${digits(numbers.largest)} to ${digits(numbers.largest)}, typed with a
        point, such as 0.1 or 2.5e-3.</span>`);
      return;
    }
    const made = products(a, b);
    const exact = d3.cumsum(made);
    const truth = exact[exact.length - 1];
    const lines = numbers.accumulators.map((name) => ({ name, sums: runningSums(numbers.formats[name], made) }));
    const said = lines.map(({ name, sums }) => {
      const last = sums[sums.length - 1];
      const off = truth === 0 || !Number.isFinite(last) ? "" : last === truth ? ", exactly"
        : `, an error of ${d3.format(".2~g")((100 * Math.abs(last - truth)) / Math.abs(truth))}%`;
      const stop = stopped(sums, made);
      const why = !Number.isFinite(last) ? `, because it exceeds ${digits(numbers.formats[name].max)}`
        : stop ? `, unchanged since product ${d3.format(",")(stop)}` : "";
      return `<li>${numbers.formats[name].label}: <strong>${value(name, last, digits(last))}</strong>${off}${why}</li>`;
    });
    result.html(`Without rounding the sum is ${value("exact", truth, digits(truth))}.<ul>${said.join("")}</ul>`);

    const edge = { left: 62, right: 16, top: 12, bottom: 42 };
    const shown = [...exact, ...lines.flatMap(({ sums }) => sums.filter(Number.isFinite)), 0];
    const x = d3.scaleLinear([0, made.length], [edge.left, width - edge.right]);
    const y = d3.scaleLinear(d3.extent(shown), [height - edge.bottom, edge.top]).nice();
    const floor = height - edge.bottom;
    const axes = svg.append("g").attr("class", "axes");
    axes.append("g").attr("transform", `translate(0,${floor})`).call(d3.axisBottom(x).ticks(width < 520 ? 4 : 8).tickFormat(d3.format(",")));
    axes.append("g").attr("transform", `translate(${edge.left},0)`).call(d3.axisLeft(y).ticks(5)
      .tickFormat((tick) => (Math.abs(tick) < 1e5 ? d3.format(",.6~r")(tick) : d3.format(".3~s")(tick)).replace("-", "−")));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width - edge.right) / 2).attr("y", height - 6)
      .attr("text-anchor", "middle").text("products added");
    const every = Math.max(1, Math.floor(made.length / 1024)); // more points than pixels show nothing
    const path = (sums) => d3.line().defined((place) => place === 0 || Number.isFinite(sums[place - 1]))
      .x((place) => x(place)).y((place) => y(place === 0 ? 0 : sums[place - 1]))
      (d3.range(0, made.length + 1).filter((place) => place % every === 0 || place === made.length));
    svg.append("path").attr("class", "exact").attr("d", path(exact));
    for (const { name, sums } of lines) svg.append("path").attr("class", `sum ${name}`).attr("d", path(sums));
  };
});
