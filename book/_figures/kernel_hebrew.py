"""Labels of the figures on kernels in Hebrew. Each begins with a Hebrew word, so that it is set from right to left."""

LABELS = {
    "your line:  c = a @ b": "השורה שלכם:  c = a @ b",
    "framework:  operator matmul": "התשתית:  האופרטור matmul",
    "backend for this device": "ה-backend של ההתקן",
    "which operator? do the shapes fit?\nis a gradient wanted?": "איזה אופרטור? האם הצורות מתאימות?\nהאם דרוש גרדיאנט?",
    "where do the tensors lie?\nwhich number format?": "היכן נמצאים הטנזורים?\nמהי תבנית המספרים?",
    "which shape and layout?\nhow large a workspace?": "מהן הצורה והפריסה?\nכמה זיכרון עבודה?",
    "put into a queue: the host goes on,\nthe device starts when it is free": (
        "נכנס לתור: המארח ממשיך,\nוההתקן מתחיל כשהוא פנוי"
    ),
    "FP32,\nlarge tiles": "אריחים גדולים,\nFP32",
    "FP16, on\ntensor cores": "ליבות טנזור,\nFP16",
    "one row,\nsplit sum": "שורה אחת,\nסכום מחולק",
    "kernels of the library": "הקרנלים של הספרייה",
    "block": "בלוק",
    "blocks of threads on the device's cores: here it is computed": "בלוקי תהליכונים על ליבות ההתקן: כאן מחשבים",
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
    "predicted": "חזוי",
    "measured": "מדוד",
}
