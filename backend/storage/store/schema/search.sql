-- Component "search" 1, in history.db beside whatever else it holds: the index
-- of words and of pieces of text. All of it can be made anew from the messages, the
-- decisions and the transcripts of jobs.
CREATE TABLE IF NOT EXISTS bridge_components (name TEXT PRIMARY KEY, version INTEGER NOT NULL);
-- A document is one message, whatever its deliveries, one revision of a
-- decision, or one line of a job's transcript. Messages have numbers from 0 up in the order in which they were
-- found, the others from -1 down.
CREATE TABLE IF NOT EXISTS search_documents (
  doc  INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL, -- 0 message, 1 decision, 2 line of a transcript
  id   TEXT    NOT NULL,
  at   INTEGER NOT NULL, -- Unix milliseconds of creation
  UNIQUE (kind, id)
);
-- The words of the documents, by their numbers; the texts are in the store.
CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5(body, content='', tokenize='unicode61 remove_diacritics 2');
-- How far the index reaches in each source: the place and the id of the last
-- row that is in it.
CREATE TABLE IF NOT EXISTS search_upto (
  source TEXT PRIMARY KEY,
  row    INTEGER NOT NULL,
  id     TEXT    NOT NULL
);
-- For the search of any piece of text: groups of about 4,000 messages that follow
-- each other, made once and never changed. A message that no group has is behind
-- the places of the last group, or new in its source.
CREATE TABLE IF NOT EXISTS search_groups (
  last     INTEGER PRIMARY KEY, -- the number of the group's last document
  first    INTEGER NOT NULL,
  oldest   INTEGER NOT NULL,    -- Unix milliseconds
  newest   INTEGER NOT NULL,
  in_order INTEGER NOT NULL,    -- 1 when no document is older than the one before
  upto     TEXT    NOT NULL     -- search_upto as it was, as JSON {source: [row, id]}
);
-- Which documents of a group hold three characters in a row: 21 bits for each
-- character, and two zeros end each text. docs is a list of differences, or a
-- bit for each document where that is shorter.
CREATE TABLE IF NOT EXISTS search_grams (
  last INTEGER NOT NULL,
  gram INTEGER NOT NULL,
  docs BLOB    NOT NULL,
  PRIMARY KEY (last, gram)
) WITHOUT ROWID;
INSERT INTO bridge_components (name, version)
  SELECT 'search', 1 WHERE NOT EXISTS (SELECT 1 FROM bridge_components WHERE name = 'search');
