"""Labels of the figures on kernels in Hebrew. Each begins with a Hebrew word, so that it is set from right to left."""

from _figures.kernel import LAUNCHED_ON as RECORDED_ON

from mlsys.measure.records import Record

LAUNCHED_ON = RECORDED_ON.replace("with", "עם").replace("driver", "מנהל התקן\u200e").replace("recorded", "הוקלט\u200e")
"""Where and when the kernels' names were recorded; a mark after a word keeps the number behind it in its place."""


def label(record: Record) -> str:
    """Return a record's device, versions and date; the one Hebrew word stands at the end, where it needs no mark."""
    return record.label.replace("measured", "נמדד")


LABELS = {
    "your line:  c = a @ b": "השורה שלכם:  c = a @ b",
    "framework:  operator matmul": "התשתית:  האופרטור matmul",
    "backend for this device": "ה-backend של ההתקן",
    "which operator? do the shapes fit?\nis a gradient needed?": "איזה אופרטור? האם הצורות מתאימות?\nהאם דרוש גרדיאנט?",
    "where are the tensors?\nwhich number format?": "היכן נמצאים הטנזורים?\nמה הפורמט המספרי?",
    "which shape and layout?\nhow much scratch memory?": "מהן הצורה והפריסה?\nכמה זיכרון עבודה?",
    "put into a queue: the host goes on,\nthe device starts when it is free": (
        "נכנס לתור: המארח ממשיך,\nוההתקן מתחיל כשהוא פנוי"
    ),
    "FP32,\nlarge tiles": "אריחים גדולים,\nFP32",
    "FP16, on\ntensor cores": "ליבות טנזור,\nFP16",
    "one row,\nsplit sum": "שורה אחת,\nסכום מחולק",
    "kernels of the library": "הקרנלים של הספרייה",
    "block": "בלוק",
    "blocks of threads on the device's cores compute the result": "בלוקי תהליכונים על ליבות ההתקן מחשבים את התוצאה",
    "copy in": "פנימה",
    "copy out": "החוצה",
    "queues three jobs, is free again": "מכניס שלוש משימות לתור ומתפנה",
    "kernel": "קרנל",
    "goes on to": "נמשך עד",
    "CPU alone": "רק CPU",
    "device": "התקן",
    "link": "קישור",
    "host": "מארח",
    "time, ms": "זמן, ms",
    "one step after the other": "שלב אחר שלב",
    "in chunks, both directions at once": "בחלקים, בשני הכיוונים בו-זמנית",
    "link, in": "קישור, פנימה",
    "link, out": "קישור, החוצה",
    "latency: µs until the answer is there": "השהיה: מיקרו-שניות עד שהתשובה מוכנה",
    "throughput: million answers per second": "תפוקה: מיליוני תשובות בשנייה",
    "inputs in one launch": "קלטים בשיגור אחד",
    "launches queued one by one": "שיגורים שנכנסים לתור אחד-אחד",
    "replayed as a graph": "הרצה חוזרת של גרף",
    "numbers per kernel": "מספרים לקרנל",
    "time per kernel, µs": "זמן לקרנל, µs",
    "predicted": "חזוי",
    "measured": "מדוד",
}
