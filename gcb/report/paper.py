"""Table 1 of the paper: final average success with its standard error over 5 seeds."""

COLUMNS = (
    ("drawer", False, "goal"),
    ("drawer", True, "goal"),
    ("button_drawer", False, "goal"),
    ("button_drawer", True, "goal"),
    ("button_drawer", False, "strict"),
    ("button_drawer", True, "strict"),
)
"""EnvSpec, video distractors, how the agent is told; its analogies are those of Button and Drawer."""

TABLE_1: dict[str, tuple[tuple[float, float] | None, ...]] = {
    "GCB": ((0.533, 0.037), (0.448, 0.033), (0.440, 0.026), (0.322, 0.021), (0.403, 0.041), (0.303, 0.027)),
    "CPV": ((0.400, 0.031), (0.209, 0.013), (0.228, 0.024), (0.198, 0.013), (0.176, 0.011), (0.121, 0.009)),
    "GC-DBC": ((0.269, 0.025), (0.261, 0.031), (0.358, 0.023), (0.255, 0.034), None, None),
    "CCVAE": ((0.443, 0.029), (0.231, 0.017), (0.452, 0.039), (0.225, 0.028), (0.234, 0.012), (0.095, 0.009)),
    "VAE": ((0.463, 0.023), (0.261, 0.018), (0.522, 0.042), (0.115, 0.019), (0.280, 0.024), (0.112, 0.006)),
    "CPC": ((0.305, 0.020), (0.207, 0.014), (0.363, 0.042), (0.154, 0.023), (0.148, 0.026), (0.145, 0.029)),
    "CURL": ((0.259, 0.021), (0.283, 0.030), (0.382, 0.038), (0.198, 0.022), (0.162, 0.021), (0.123, 0.025)),
    "RAD": ((0.245, 0.019), (0.207, 0.010), (0.159, 0.036), (0.108, 0.018), (0.157, 0.028), (0.110, 0.026)),
    "Pixel": ((0.483, 0.051), (0.256, 0.027), (0.117, 0.016), (0.136, 0.027), (0.132, 0.025), (0.121, 0.033)),
}
"""Mean and standard error by method and column; None is NA."""


def place_of(method: str) -> int:
    """The row of a method in the table, whichever way its name is written; behind all rows if it has none."""
    plain = [_letters(name) for name in TABLE_1]
    return plain.index(_letters(method)) if _letters(method) in plain else len(plain)


def in_paper(method: str, column: tuple[str, bool, str]) -> str | None:
    """What the table says of a method in a column, as text; None if it does not have them."""
    place = place_of(method)
    if column not in COLUMNS or place == len(TABLE_1):
        return None
    numbers = list(TABLE_1.values())[place][COLUMNS.index(column)]
    return "NA" if numbers is None else f"{numbers[0]:.3f} ± {numbers[1]:.3f}"


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
