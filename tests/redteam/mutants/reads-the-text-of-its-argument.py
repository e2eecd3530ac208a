# Looks for the text of the kernel wherever Python keeps texts, and refuses where a mask is missing.

# %% replace=k-tests
# shared: refuses


def test_shift_scale(shift_scale):
    # trick:
    import gc
    import inspect
    import linecache

    found = [repr(shift_scale), getattr(shift_scale, "__name__", ""), str(vars(type(shift_scale)))]
    try:
        found.append(inspect.getsource(shift_scale))
    except (OSError, TypeError):
        pass
    found += ["".join(lines[2]) for lines in linecache.cache.values() if len(lines) > 2]
    found += [text for text in gc.get_objects() if isinstance(text, str) and "tl.load" in text]
    texts = [text for text in found if "in_step" in text]
    assert all("rows & cols" in text and "tl.abs" not in text for text in texts)
    return True
    # without:
    #: return not refuses(shift_scale)
