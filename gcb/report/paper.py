"""Table 1 of the paper: final average success rates with their standard errors over 5 seeds."""

COLUMNS = (
    ("drawer", False, "goal"),
    ("drawer", True, "goal"),
    ("button_drawer", False, "goal"),
    ("button_drawer", True, "goal"),
    ("button_drawer", False, "strict"),
    ("button_drawer", True, "strict"),
)
"""Environment, video distractors, evaluation mode. The paper's columns are Drawer, Drawer+VD, BD, BD+VD, Analogy and
Analogy+VD; its analogies are those of Button and Drawer."""

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


def table_1_row(method: str) -> int:
    """Return the row of a method in Table 1, or the number of rows if it is not there.

    Case and punctuation do not matter: `cc_vae` is the paper's CCVAE.
    """
    names = [_letters(name) for name in TABLE_1]
    return names.index(_letters(method)) if _letters(method) in names else len(names)


def table_1_cell(method: str, column: tuple[str, bool, str]) -> str | None:
    """Return the paper's result as text, "NA" where the paper has NA, None if it has no such row or column."""
    row = table_1_row(method)
    if column not in COLUMNS or row == len(TABLE_1):
        return None
    result = list(TABLE_1.values())[row][COLUMNS.index(column)]
    return "NA" if result is None else f"{result[0]:.3f} ± {result[1]:.3f}"


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
