"""What is made of a judgement: the entry in nbgrader's gradebook, the record, the feedback page."""
