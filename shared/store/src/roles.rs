//! Who may do what: a role for each component, made by migration 0006, and the users that log in as them.
//!
//! Roles belong to the whole server, rights to one database. A login user is a member of one role and
//! has nothing of its own but its limits, so that they hold behind a pooler as well. Users that exist
//! are left as they are: whoever made them by hand, with a password, knows better.

use fault::FaultPoint;
use sqlx::PgPool;

use crate::Error;

/// One role a component; the three consumers have one between them.
pub const ROLES: [&str; 9] = [
    "tailcar_collector",
    "tailcar_relay",
    "tailcar_consumer",
    "tailcar_dead_letter",
    "tailcar_reconciler",
    "tailcar_sweeper",
    "tailcar_janitor",
    "tailcar_monitor",
    "tailcar_operator",
];

/// The user that logs in as `role`.
#[must_use]
pub fn login(role: &str) -> String {
    format!("{role}_login")
}

/// Makes the login user of each role that has none. Where the server has the role `rds_iam`, they log in
/// with tokens of IAM; elsewhere nobody gave them a password yet.
///
/// # Errors
///
/// [`Error::Logins`]: the user of `db` may not create roles, or may not grant these.
pub async fn create_logins(db: &PgPool) -> Result<(), Error> {
    sqlx::raw_sql(
        r"
        -- roles::create_logins
        do $$
        declare
            role  text;
            login text;
        begin
            for role in
                select rolname from pg_roles where rolname ~ '^tailcar_[a-z_]+$' and not rolcanlogin order by rolname
            loop
                login := role || '_login';
                continue when exists (select from pg_roles where rolname = login);
                begin
                    execute format('create role %I login', login);
                    execute format('alter role %I set statement_timeout = %L', login, '30s');
                    execute format('alter role %I set lock_timeout = %L', login, '5s');
                    execute format('alter role %I set idle_in_transaction_session_timeout = %L', login, '30s');
                    execute format('grant %I to %I', role, login);
                    if exists (select from pg_roles where rolname = 'rds_iam') then
                        execute format('grant rds_iam to %I', login);
                    end if;
                exception
                    -- The migrator of another database makes the same one at this moment.
                    when duplicate_object or unique_violation then null;
                end;
            end loop;
        end
        $$
        ",
    )
    .execute(db)
    .fault_point("roles::create_logins")
    .await
    .map_err(Error::Logins)?;
    Ok(())
}
