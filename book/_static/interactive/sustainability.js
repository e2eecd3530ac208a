// Energy and carbon of a fleet in a year: electricity on the grid of a year, and the manufacture spread over the years of use.
"use strict";

courseFigure.start("sustainability", "orange: making the chips · blue: electricity · the chosen grid is in bold",
  ({ controls, svg, result }, numbers, redraw) => {
  const { choice, number, plain, amount, value } = courseFigure;
  const { limits, first } = numbers;
  const entry = (text, key, whole = false) => number(controls, text, first[key], () => limits[key], redraw, whole);
  const chips = entry("Chips", "chips", true);
  const watts = entry("Watts of a chip with work", "watts");
  const idle = entry("Watts without work", "idle");
  const busy = entry("Hours with work, %", "busy");
  const building = choice(controls, "Building (PUE)", redraw);
  const year = choice(controls, "Year of the grid", () => { own(); redraw(); });
  const grid = choice(controls, "Grid", redraw);
  const grams = entry("Own intensity, g per kWh", "grams");
  const making = choice(controls, "Making a chip", redraw);
  const life = entry("Years of use", "life");
  const place = choice(controls, "Price of electricity", redraw);

  building.set(numbers.pues.map((one) => [one.id, one.name]), first.pue);
  year.set([...numbers.years.map((one) => [String(one), String(one)]), ["own", "a number of my own"]], String(first.year));
  grid.set(numbers.names.map((one) => [one.id, one.name]), first.grid);
  making.set(numbers.embodied.map((one) => [one.id, one.name]), first.embodied);
  place.set(numbers.places.map((one) => [one.id, one.name]), first.place);

  // The own intensity is asked for only where it is used.
  function own() {
    grams.box.attr("hidden", year.value === "own" ? null : true);
  }
  own();

  const named = (list, id) => list.find((one) => one.id === id);

  // Why the choice of grid and year cannot be computed, or null.
  function otherYear() {
    if (year.value === "own" || grid.value in numbers.grids[year.value]) return null;
    const known = numbers.years.filter((one) => grid.value in numbers.grids[one]);
    return `The carbon intensity of ${named(numbers.names, grid.value).name} is known for ${known.join(" and ")}, not for ` +
      `${year.value}: choose ${known.join(" or ")}, or enter a number of your own.`;
  }

  return (width) => {
    const used = [chips, watts, idle, busy, life, ...(year.value === "own" ? [grams] : [])];
    const wrong = used.map((field) => field.wrong).find((text) => text) ?? otherYear();
    if (wrong) {
      svg.attr("height", 0);
      result.html('<strong class="limit wrong"></strong>').select(".wrong").text(wrong);
      return;
    }
    const average = idle.value + (watts.value - idle.value) * busy.value / 100;
    const kwh = average * chips.value / 1000 * 8760 * named(numbers.pues, building.value).pue;
    const made = named(numbers.embodied, making.value).kilos * chips.value / life.value / 1000;
    const tonnes = (intensity) => kwh * intensity / 1e6;
    const intensity = year.value === "own" ? grams.value : numbers.grids[year.value][grid.value];
    const whole = tonnes(intensity) + made;
    const bill = kwh * named(numbers.places, place.value).price;
    const rest = (1 - busy.value / 100) * idle.value / average;
    const years = year.value === "own" || +year.value === numbers.priceYear ? ""
      : ` <strong class="other-year">The price is of ${numbers.priceYear} and the grid of ${year.value}: do not read both as one year.</strong>`;
    result.html(`On average a chip draws ${value("average", average, plain(average))} W; ${value("rest", rest, plain(100 * rest))}% of
      the energy is drawn without work. In a year the fleet takes ${value("kwh", kwh, amount(1000 * kwh, "Wh"))}, which cost
      ${value("bill", bill, plain(bill))} dollars at the price of ${named(numbers.places, place.value).name}. It emits
      <strong>${value("whole", whole, plain(whole))} tonnes</strong>: ${value("used", tonnes(intensity), plain(tonnes(intensity)))} for electricity and
      ${value("making", made, plain(made))} for making the chips, ${value("share", made / whole, plain(100 * made / whole))}%.${years}`);

    const listed = year.value === "own" ? [["own", grams.value]] : Object.entries(numbers.grids[year.value]);
    listed.sort((one, other) => one[1] - other[1]);
    const edge = { left: 104, right: 64 };
    const most = d3.max(listed, ([, each]) => tonnes(each)) + made;
    const x = d3.scaleLinear([0, most], [edge.left, width - edge.right]);
    const row = 21;
    listed.forEach(([id, each], at) => {
      const y = 4 + row * at;
      const bold = id === grid.value || id === "own" ? 700 : 400;
      const name = id === "own" ? "your grid" : named(numbers.names, id).name;
      svg.append("text").attr("x", edge.left - 8).attr("y", y + 13).attr("text-anchor", "end").attr("font-weight", bold).text(name);
      svg.append("rect").attr("class", "held part1").attr("x", edge.left).attr("y", y).attr("width", x(made) - edge.left).attr("height", row - 5);
      svg.append("rect").attr("class", "held part0").attr("x", x(made)).attr("y", y)
        .attr("width", Math.max(0, x(made + tonnes(each)) - x(made))).attr("height", row - 5);
      svg.append("text").attr("x", x(made + tonnes(each)) + 5).attr("y", y + 13).attr("font-weight", bold).text(plain(made + tonnes(each)));
    });
    const bottom = 8 + row * listed.length;
    svg.append("g").attr("class", "axes").attr("transform", `translate(0,${bottom})`).call(d3.axisBottom(x).ticks(width < 480 ? 3 : 6));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width - edge.right) / 2).attr("y", bottom + 38)
      .attr("text-anchor", "middle").text("tonnes of CO₂ a year");
    svg.attr("height", bottom + 44);
  };
});
