"""What an agent's representation knows: neighbours, maps, arithmetic, the numbers behind the pictures, and reports."""
