"""Implementation of ``hogwild.shared``: worker processes that run the user's script again."""
