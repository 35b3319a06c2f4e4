CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT NOT NULL, left_on TEXT);
INSERT INTO members VALUES
    (1, 'Ana Lund', NULL), (2, 'Bo Falk', NULL), (3, 'Cleo Dahl', '2026-01-15'), (4, 'Ana Lund', NULL),
    (5, 'Dan Roos', NULL), (6, 'Eva Holm', NULL);
CREATE TABLE loans (
    id INTEGER PRIMARY KEY, member_id INTEGER NOT NULL, book TEXT NOT NULL, due_on TEXT NOT NULL, returned_on TEXT
);
INSERT INTO loans VALUES
    (1, 1, 'Tides', '2026-03-10', NULL), (2, 1, 'The Long Bridge', '2026-02-20', ''),
    (3, 1, 'Bees in Town', '2026-03-31', NULL), (4, 2, 'Winter Roads', '2026-01-12', '2026-02-01'),
    (5, 2, 'Salt', '2026-03-30', NULL), (6, 3, 'Old Maps', '2025-12-01', NULL),
    (7, 4, 'Harbour Light', '2026-03-01', NULL), (8, 4, 'Knots', '2026-03-05', ''),
    (9, 4, 'Two Gardens', '2026-03-18', NULL), (10, 5, 'On Clay', '2026-04-02', NULL),
    (11, 6, 'Night Trains', '2026-03-31', NULL), (12, 5, 'Bread', '2026-02-11', '');
