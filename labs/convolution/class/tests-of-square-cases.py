# The tests of g try one image of one tile, with the channels last. They find four of twelve mutants: those of the border
# of zeros, of both edges, and of filters whose rows and columns are swapped. Points: all but two thirds of g.

# %% solve=*

# %% replace=f-why
Tiles of 128 x 128: the second layer has 196 x 4 = 784 tiles, 5.9 rounds of 132; the third has 49 x 2 = 98, one round in
which 34 multiprocessors wait. The second does 102 FLOPs per byte, less than 200, so memory limits it; the third does
nearly 1,000, so arithmetic does. Larger tiles do not help the second, and leave more of the GPU idle in the third.

# %% replace=g-tests
def test_conv(conv):
    draw = grading.Draws("mine", DEVICE)
    x, f = images(draw, 1, 4, 4, 16), images(draw, 16, 3, 3, 16)
    grading.assert_close(conv(x, f, 1, 1), right_conv(x, f, padding=1), what="one tile")
