import lzma
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from helpers.site_of_one_chapter import CHAPTER, write_site
from lxml import etree

from mlsys.course.kit.moodle import moodle_xml
from mlsys.course.kit.qti import write_qti
from mlsys.course.kit.questions import Chapter, Choice, Question, read_questions
from mlsys.errors import UserError

SITE = Path(__file__).parents[3] / "_build" / "html"
SCHEMA = Path(__file__).parents[2] / "golden" / "imsqti_v2p1.xsd.xz"
"""The schema of QTI 2.1 by IMS Global, unchanged; its license, which lets it be passed on, is inside the file."""
QTI = "{http://www.imsglobal.org/xsd/imsqti_v2p1}"

STUBS = {
    "xml.xsd": '<schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="http://www.w3.org/XML/1998/namespace">'
    '<attribute name="lang" type="language"/><attribute name="base" type="anyURI"/></schema>',
    "XInclude.xsd": '<schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="http://www.w3.org/2001/XInclude">'
    '<element name="include"/></schema>',
    "mathml2.xsd": '<schema xmlns="http://www.w3.org/2001/XMLSchema" '
    'targetNamespace="http://www.w3.org/1998/Math/MathML"><element name="math"/></schema>',
    "apipv1p0_qtiextv2p1_v1p0.xsd": '<schema xmlns="http://www.w3.org/2001/XMLSchema" '
    'targetNamespace="http://www.imsglobal.org/xsd/apip/apipv1p0/imsapip_qtiv1p0"><element name="apipAccessibility"/>'
    "</schema>",
}
"""What the schema of QTI imports, as far as it names it: the questions use none of it but xml:lang."""


class Stubs(etree.Resolver):
    def resolve(self, url: str, public: str | None, context: object) -> object:
        return self.resolve_string(STUBS[url.rpartition("/")[2]], context)


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(Stubs())
    return etree.XMLSchema(etree.fromstring(lzma.decompress(SCHEMA.read_bytes()), parser))


@pytest.fixture
def chapters(tmp_path: Path) -> list[Chapter]:
    write_site(tmp_path)
    return read_questions(tmp_path)


def test_a_self_check_is_read_with_its_numbers_and_formulas_and_without_links(chapters: list[Chapter]) -> None:
    text = r"Which <em>side</em> \(T &lt; 9\) fits the cache?"
    choices = (Choice("16 &amp; more", False, "It is small."), Choice("<code>64</code>", True, "It fits."))
    assert chapters == [Chapter("cache", "Caches", "en", (Question("cache-side", text, choices),))]


def test_a_site_without_self_checks_is_refused(tmp_path: Path) -> None:
    write_site(tmp_path, CHAPTER.replace("course-quiz", "other"))
    with pytest.raises(UserError, match="has no self-check"):
        read_questions(tmp_path)


def package(chapters: list[Chapter], folder: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(write_qti(chapters, folder / "questions.zip")) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def test_the_package_for_canvas_is_valid_by_the_schema(
    chapters: list[Chapter], tmp_path: Path, schema: etree.XMLSchema
) -> None:
    files = package(chapters, tmp_path)
    assert sorted(files) == ["cache-side.xml", "checks-cache.xml", "imsmanifest.xml"]
    for name in ("cache-side.xml", "checks-cache.xml"):
        schema.assertValid(etree.fromstring(files[name]))


def test_the_schema_refuses_what_is_wrong(chapters: list[Chapter], tmp_path: Path, schema: etree.XMLSchema) -> None:
    item = package(chapters, tmp_path)["cache-side.xml"]
    assert not schema.validate(etree.fromstring(item.replace(b'cardinality="single"', b'cardinality="one"')))
    assert not schema.validate(etree.fromstring(item.replace(b"simpleChoice", b"easyChoice")))


def scored(item: bytes, answer: str) -> tuple[float, str]:
    """The points and the feedback that the response processing of an item gives for an answer."""
    root = ET.fromstring(item)
    for condition in root.iter(f"{QTI}responseIf"):
        match = condition.find(f"{QTI}match/{QTI}baseValue")
        if match is not None and match.text == answer:
            values = {
                outcome.get("identifier"): outcome.find(f".//{QTI}baseValue").text  # type: ignore[union-attr]
                for outcome in condition.iter(f"{QTI}setOutcomeValue")
            }
            said = next(one for one in root.iter(f"{QTI}modalFeedback") if one.get("identifier") == values["FEEDBACK"])
            return float(values["SCORE"] or 0), "".join(said.itertext())
    raise AssertionError(f"no condition for {answer}")


def test_an_item_gives_the_point_to_the_right_choice_and_says_why(chapters: list[Chapter], tmp_path: Path) -> None:
    item = package(chapters, tmp_path)["cache-side.xml"]
    assert scored(item, "choice_a") == (0, "It is small.")
    assert scored(item, "choice_b") == (1, "It fits.")
    assert ET.fromstring(item).findtext(f"{QTI}responseDeclaration/{QTI}correctResponse/{QTI}value") == "choice_b"


def test_the_manifest_names_every_file_and_each_only_once(chapters: list[Chapter], tmp_path: Path) -> None:
    files = package(chapters, tmp_path)
    resources = ET.fromstring(files["imsmanifest.xml"]).findall(".//{*}resource")
    assert sorted(one.get("href", "") for one in resources) == sorted(set(files) - {"imsmanifest.xml"})


def test_the_same_questions_give_the_same_package(chapters: list[Chapter], tmp_path: Path) -> None:
    assert write_qti(chapters, tmp_path / "a.zip").read_bytes() == write_qti(chapters, tmp_path / "b.zip").read_bytes()


def check_moodle(text: str, chapters: list[Chapter]) -> None:
    """Hold a file against what Moodle's page on its format demands of multiple-choice questions."""
    quiz = ET.fromstring(text)
    assert quiz.tag == "quiz"
    asked = [question for chapter in chapters for question in chapter.questions]
    found = [question for question in quiz if question.get("type") == "multichoice"]
    assert [one.findtext("idnumber") for one in found] == [one.name for one in asked]
    assert len([one for one in quiz if one.get("type") == "category"]) == len(chapters)
    for element, question in zip(found, asked, strict=True):
        assert 0 < len(element.findtext("name/text", "")) <= 255
        assert element.findtext("single") == "true"
        fractions = [float(answer.get("fraction", "")) for answer in element.iter("answer")]
        assert sorted(fractions) == [0.0] * (len(question.choices) - 1) + [100.0]
        assert [fraction == 100 for fraction in fractions] == [choice.right for choice in question.choices]
        for part in (element.find("questiontext"), *element.iter("answer"), *element.iter("feedback")):
            assert part is not None
            assert part.get("format") == "html"
            ET.fromstring(part.findtext("text", ""))


def test_the_file_for_moodle_has_the_form_that_moodle_documents(chapters: list[Chapter]) -> None:
    text = moodle_xml(chapters, "A/Book")
    check_moodle(text, chapters)
    assert "<text>$course$/top/A//Book/Caches</text>" in text


@pytest.mark.proof
def test_all_self_checks_of_the_book_are_valid(tmp_path: Path, schema: etree.XMLSchema) -> None:
    if not (SITE / "book" / "index.html").is_file():
        pytest.skip("the book is not built: run `make book`")
    chapters = read_questions(SITE.parents[1])
    asked = [question for chapter in chapters for question in chapter.questions]
    sources = "".join(path.read_text(encoding="utf-8") for path in (SITE.parents[1] / "book").glob("*/*.md"))
    assert len(asked) == sources.count("```{quiz} ")
    assert all(sum(choice.right for choice in question.choices) == 1 for question in asked)
    for name, data in package(chapters, tmp_path).items():
        if name != "imsmanifest.xml":
            schema.assertValid(etree.fromstring(data))
    assert len(list(ET.fromstring(moodle_xml(chapters, "A Book")).iter("answer"))) == sum(
        len(question.choices) for question in asked
    )
