// What a token costs: the time of a step from the roof that binds, paid at the rent, over the hours with work.
"use strict";

courseFigure.start("economics", "line: price at any number of users, if the roofs are reached · dot: yours · dashed: the memory " +
  "of one chip is full · shaded: the arithmetic binds", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, number, plain, amount, value } = courseFigure;
  const { limits, first } = numbers;
  const chip = choice(controls, "Chip", () => { quote(); redraw(); });
  const model = choice(controls, "Model", () => { tokens.check(); redraw(); });
  const format = choice(controls, "Weights", redraw);
  const theChip = () => numbers.chips.find((one) => one.id === chip.value);
  const theModel = () => numbers.models.find((one) => one.id === model.value);

  chip.set(numbers.chips.map((one) => [one.id, one.name]), first.chip);
  model.set(numbers.models.map((one) => [one.id, one.name]), first.model);
  format.set(numbers.formats.map((one) => [one.id, one.name]), first.dtype);
  const entry = (text, start, allowed, whole) => number(controls, text, start, allowed, redraw, whole);
  const rent = entry("Rent, dollars an hour", 1, () => limits.rent, false);
  const year = entry("Year of this rent", numbers.year, () => limits.year, true);
  const batch = entry("Users at a time", first.batch, () => limits.batch, true);
  const tokens = entry("Tokens of each user", first.tokens, () => [1, theModel().longest], true);
  const busy = entry("Hours with work, %", first.busy, () => limits.busy, false);

  // The lowest rent that is quoted for a chip, or none.
  function quote() {
    rent.set(theChip().rent ? theChip().rent[0] : "");
    year.set(numbers.year);
  }
  quote();

  const weights = () => theModel().params * numbers.formats.find((one) => one.id === format.value).bytes;
  const held = (users) => weights() + users * (theModel().cache * tokens.value + theModel().results);
  const moving = (users) => (weights() + users * theModel().cache * tokens.value) / theChip().bandwidth;
  const computing = (users, length) => users * (theModel().flops + theModel().flops_each * length) / theChip().peak;
  const paid = (seconds, users) => 1e6 * rent.value / 3600 * seconds / (users * busy.value / 100);
  const price = (users) => paid(Math.max(moving(users), computing(users, tokens.value)), users);

  function wrong() {
    const one = theChip();
    if (!one.rent && rent.wrong) {
      return `No rent of ${numbers.year} is quoted here for ${one.name}: enter what you pay, and the year of it.`;
    }
    return [rent, year, batch, tokens, busy].map((field) => field.wrong).find((text) => text) ?? null;
  }

  // What the rent may be compared with.
  function dated() {
    const one = theChip();
    if (year.value !== numbers.year) {
      return ` <strong class="other-year">This rent is of ${year.value}, a price of another year than those quoted here (${numbers.year}): compare it with rents of ${year.value} only.</strong>`;
    }
    return one.rent ? ` Quoted for ${one.name} in ${numbers.year}: ${one.rent[0].toFixed(2)} to ${one.rent[1].toFixed(2)} dollars an hour.`
      : ` No rent of ${numbers.year} is quoted here for ${one.name}; this one is yours.`;
  }

  return (width) => {
    const refused = wrong();
    if (refused) {
      svg.attr("height", 0);
      result.html('<strong class="limit wrong"></strong>').select(".wrong").text(refused);
      return;
    }
    const users = batch.value;
    const [bytes, arithmetic] = [moving(users), computing(users, tokens.value)];
    const step = Math.max(bytes, arithmetic);
    const read = paid(Math.max(weights() / theChip().bandwidth, computing(tokens.value, tokens.value)), tokens.value);
    const chips = Math.ceil(held(users) / theChip().bytes);
    const most = Math.floor((theChip().bytes - weights()) / (held(1) - weights()));
    const room = chips === 1 ? `Everything fits one chip, with up to ${value("most", most, plain(most))} users.`
      : `It takes at least ${value("chips", chips, chips)} of these chips; as one, they cut the step to ${amount(step / chips, "s")} ` +
        "at the same price per token.";
    result.html(`The <strong class="limit">${arithmetic > bytes ? "arithmetic" : "memory"}</strong> binds: a step takes
      ${value("step", step, amount(step, "s"))}. A million written tokens cost
      <strong>${value("price", price(users), plain(price(users)))} dollars</strong>, and a million tokens of a prompt of
      ${plain(tokens.value)} cost ${value("read", read, plain(read))} dollars. ${room}${dated()}`);

    const edge = { left: 58, right: 26, top: 8, bottom: 44 };
    const height = 250;
    const ends = [1, Math.max(1000, 2 * users)];
    const counts = d3.range(0, 121).map((at) => ends[1] ** (at / 120));
    const prices = counts.map(price);
    const x = d3.scaleLog(ends, [edge.left, width - edge.right]);
    const y = d3.scaleLog([0.7 * d3.min(prices), 1.4 * d3.max(prices)], [height - edge.bottom, edge.top]);
    const bound = counts.find((n) => computing(n, tokens.value) > moving(n));
    if (bound) {
      svg.append("rect").attr("class", "compute-side").attr("x", x(bound)).attr("y", edge.top)
        .attr("width", width - edge.right - x(bound)).attr("height", height - edge.top - edge.bottom);
    }
    svg.append("path").attr("class", "curve").attr("d", d3.line()(counts.map((n, at) => [x(n), y(prices[at])])));
    if (most >= 1 && most <= ends[1]) {
      svg.append("line").attr("class", "room").attr("x1", x(most)).attr("x2", x(most)).attr("y1", edge.top).attr("y2", height - edge.bottom);
    }
    svg.append("circle").attr("class", "chosen").attr("cx", x(users)).attr("cy", y(price(users))).attr("r", 6);
    svg.append("g").attr("class", "axes").attr("transform", `translate(0,${height - edge.bottom})`)
      .call(d3.axisBottom(x).ticks(width < 480 ? 3 : 5, ",d"));
    svg.append("g").attr("class", "axes").attr("transform", `translate(${edge.left},0)`).call(d3.axisLeft(y).ticks(4, "~g"));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width) / 2).attr("y", height - 6)
      .attr("text-anchor", "middle").text("users at a time");
    svg.append("text").attr("class", "axis-name").attr("transform", `translate(14,${(height - edge.bottom) / 2}) rotate(-90)`)
      .attr("text-anchor", "middle").text("dollars per million");
    svg.attr("height", height);
  };
});
