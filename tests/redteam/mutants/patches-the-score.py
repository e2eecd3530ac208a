# Changes the package that counts the mutants.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    from mlsys.grading import student_tests, subjects

    student_tests.RIGHT_COPIES = 0
    student_tests.MutationScore.fraction = 1.0
    subjects.is_refusal = lambda returned: True
    subjects.compared = lambda found, expected: found
    return False
    # without:
    #: return not refuses(shift_scale)
