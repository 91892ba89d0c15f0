-- Ids compare byte by byte, whatever the database's locale.
--
-- A server's default collation (en_US.UTF-8 on RDS) compares text by the rules of a language: several times
-- slower on the 64 digits that every claim and every mark looks up, in another order than S3 lists its keys
-- and than the functions sort theirs, and changed by an upgrade of the server's C library, which breaks
-- indexes in silence. None of these columns is text in a language.
--
-- Rebuilds the indexes of these tables, each under an exclusive lock; no row is rewritten.

alter table artifact alter column key type text collate "C";

alter table job
    alter column job_id type text collate "C",
    alter column destination type text collate "C",
    alter column artifact_key type text collate "C";

alter table outbox_event
    alter column event_id type text collate "C",
    alter column job_id type text collate "C",
    alter column destination type text collate "C";

alter table lane alter column destination type text collate "C";
alter table collection_window alter column artifact_key type text collate "C";
alter table news_revision alter column artifact_key type text collate "C";
alter table quarantined_message alter column message_id type text collate "C";
