"""Pages of the book as notebooks for Colab, and the quizzes on them."""
