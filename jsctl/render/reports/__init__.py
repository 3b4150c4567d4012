"""What reports show: rows made of API objects, and the columns and screens over them."""
