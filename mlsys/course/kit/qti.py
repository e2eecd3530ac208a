"""The question bank as a QTI 2.1 package: a zip that Canvas and other platforms import.

Each chapter is an assessment, each self-check an item with feedback on every choice. The forms are those of the
specification, https://www.imsglobal.org/question/qtiv2p1/imsqti_infov2p1.html; `tests/course/kit` validates them.
"""

import zipfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from mlsys.course.kit.questions import Chapter, Question, plain

_QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_DATE = (1980, 1, 1, 0, 0, 0)  # the same questions give the same file

_ITEM = """<assessmentItem xmlns="{qti}" identifier="{name}" title={title} adaptive="false" timeDependent="false"
  xml:lang="{language}">
<responseDeclaration identifier="RESPONSE" cardinality="single" baseType="identifier">
<correctResponse><value>{right}</value></correctResponse></responseDeclaration>
<outcomeDeclaration identifier="SCORE" cardinality="single" baseType="float"/>
<outcomeDeclaration identifier="FEEDBACK" cardinality="multiple" baseType="identifier"/>
<itemBody><div>{text}</div>
<choiceInteraction responseIdentifier="RESPONSE" shuffle="false" maxChoices="1">
{choices}
</choiceInteraction></itemBody>
<responseProcessing>
{conditions}
</responseProcessing>
{feedback}
</assessmentItem>
"""

_CONDITION = """<responseCondition><responseIf>
<match><variable identifier="RESPONSE"/><baseValue baseType="identifier">{choice}</baseValue></match>
<setOutcomeValue identifier="SCORE"><baseValue baseType="float">{score}</baseValue></setOutcomeValue>
<setOutcomeValue identifier="FEEDBACK"><multiple><variable identifier="FEEDBACK"/>
<baseValue baseType="identifier">{choice}_fb</baseValue></multiple></setOutcomeValue>
</responseIf></responseCondition>"""

_TEST = """<assessmentTest xmlns="{qti}" identifier="{name}" title={title}>
<testPart identifier="part" navigationMode="nonlinear" submissionMode="simultaneous">
<assessmentSection identifier="section" title={title} visible="true">
{references}
</assessmentSection></testPart></assessmentTest>
"""

_MANIFEST = """<manifest xmlns="http://www.imsglobal.org/xsd/imscp_v1p1" xmlns:imsqti="{qti}" identifier="questions">
<metadata><schema>QTIv2.1 Package</schema><schemaversion>1.0.0</schemaversion></metadata>
<organizations/>
<resources>
{resources}
</resources></manifest>
"""


def item(chapter: Chapter, question: Question) -> str:
    """Return the XML of one question."""
    names = [f"choice_{letter}" for letter in "abcdefghij"[: len(question.choices)]]
    pairs = list(zip(names, question.choices, strict=True))
    return _HEAD + _ITEM.format(
        qti=_QTI,
        name=question.name,
        title=quoteattr(_short(plain(question.text))),
        language=chapter.language,
        right=next(name for name, choice in pairs if choice.right),
        text=f"<p>{question.text}</p>",
        choices="\n".join(f'<simpleChoice identifier="{name}">{choice.text}</simpleChoice>' for name, choice in pairs),
        conditions="\n".join(_CONDITION.format(choice=name, score=f"{choice.right:d}.0") for name, choice in pairs),
        feedback="\n".join(
            f'<modalFeedback outcomeIdentifier="FEEDBACK" identifier="{name}_fb" showHide="show">'
            f"<p>{choice.feedback}</p></modalFeedback>"
            for name, choice in pairs
        ),
    )


def assessment(chapter: Chapter) -> str:
    """Return the XML of the assessment that lists the questions of a chapter."""
    references = (
        f'<assessmentItemRef identifier="{question.name}" href="{question.name}.xml"/>'
        for question in chapter.questions
    )
    return _HEAD + _TEST.format(
        qti=_QTI, name=_test_name(chapter), title=quoteattr(chapter.title), references="\n".join(references)
    )


def write_qti(chapters: list[Chapter], target: Path) -> Path:
    """Write the package with the questions of all chapters and return its path."""
    files, resources = {}, []
    for chapter in chapters:
        for question in chapter.questions:
            files[f"{question.name}.xml"] = item(chapter, question)
            resources.append(
                f'<resource identifier="{question.name}" type="imsqti_item_xmlv2p1" href="{question.name}.xml">'
                "<metadata><imsqti:qtiMetadata><imsqti:interactionType>choiceInteraction</imsqti:interactionType>"
                f'</imsqti:qtiMetadata></metadata><file href="{question.name}.xml"/></resource>'
            )
        name = _test_name(chapter)
        files[f"{name}.xml"] = assessment(chapter)
        uses = "".join(f'<dependency identifierref="{question.name}"/>' for question in chapter.questions)
        resources.append(
            f'<resource identifier="{name}" type="imsqti_test_xmlv2p1" href="{name}.xml">'
            f'<file href="{name}.xml"/>{uses}</resource>'
        )
    files["imsmanifest.xml"] = _HEAD + _MANIFEST.format(qti=_QTI, resources="\n".join(resources))
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(zipfile.ZipInfo(name, _DATE), text, zipfile.ZIP_DEFLATED)
    return target


def _test_name(chapter: Chapter) -> str:
    return f"checks-{chapter.name}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77].rsplit(' ', 1)[0]} …"
