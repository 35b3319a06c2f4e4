CREATE TABLE parts (id INTEGER PRIMARY KEY, name TEXT NOT NULL, min_stock INTEGER NOT NULL, discontinued INTEGER NOT NULL);
INSERT INTO parts VALUES
    (1, 'bolt', 100, 0), (2, 'chain', 10, 0), (3, 'cog', 20, 0), (4, 'belt', 5, 0), (5, 'lamp', 4, 1), (6, 'nut', 50, 0),
    (7, 'saddle', 3, 0);
CREATE TABLE movements (
    id INTEGER PRIMARY KEY, part_id INTEGER NOT NULL, kind TEXT NOT NULL, pieces INTEGER NOT NULL, cancelled INTEGER NOT NULL
);
INSERT INTO movements VALUES
    (1, 1, 'in', 150, 0), (2, 2, 'in', 12, 0), (3, 4, 'in', 8, 0), (4, 1, 'out', 80, 0), (5, 5, 'in', 4, 0),
    (6, 6, 'in', 90, 0), (7, 4, 'out', 6, 0), (8, 4, 'out', 3, 1), (9, 6, 'in', 30, 1), (10, 2, 'out', 2, 0),
    (11, 5, 'out', 3, 0), (12, 7, 'in', 5, 0), (13, 6, 'out', 60, 0), (14, 7, 'out', 1, 0);
