"""The instructor's kit, made from the book: syllabi with calendars, slides with notes, and a question bank."""
