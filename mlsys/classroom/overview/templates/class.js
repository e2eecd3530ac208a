const form = document.getElementById("filters");
const students = [...document.querySelectorAll("#students > tbody")];
function fits({ dataset }) {
  const { question, verdict, section, text } = Object.fromEntries(new FormData(form));
  const verdicts = dataset.verdicts.split(";").filter(Boolean).map((entry) => entry.split("="));
  const ofQuestion = verdicts.filter(([name]) => !question || name === question);
  return (!verdict || ofQuestion.some(([, found]) => found === verdict))
    && (!section || dataset.section === section)
    && (!text || dataset.text.includes(text.trim().toLowerCase()));
}
function show() {
  let count = 0;
  for (const student of students) {
    student.hidden = !fits(student);
    count += student.hidden ? 0 : 1;
  }
  document.getElementById("count").textContent = `${count} of ${students.length} students`;
}
form.hidden = false;
form.addEventListener("input", show);
form.addEventListener("reset", () => setTimeout(show));
form.addEventListener("submit", (event) => event.preventDefault());
show();
