"""Functions: what they are told, when they run, where they write."""

import re
import unittest

from . import settings
from .translated import WAYS, properties, whole

DATABASE_URL_OR_LIKE = {"DATABASE_URL", "DATABASE_SECRET_ARN", "DATABASE_IAM_USER"}
WITH_IAM = {"DATABASE_HOST", "DATABASE_PORT", "DATABASE_NAME"}


class Environment(unittest.TestCase):
    def test_every_function_has_every_variable_that_its_settings_read(self):
        for name, function in properties("AWS::Lambda::Function").items():
            for variable in sorted(settings.read_by(name) - DATABASE_URL_OR_LIKE - WITH_IAM):
                with self.subTest(f"{name}: {variable}"):
                    self.assertIn(variable, function["Environment"]["Variables"])

    def test_every_function_is_told_one_way_to_the_database(self):
        for way, parameters in WAYS.items():
            for name, function in properties("AWS::Lambda::Function", **parameters).items():
                with self.subTest(f"{name}, {way}"):
                    told = DATABASE_URL_OR_LIKE & function["Environment"]["Variables"].keys()
                    self.assertEqual(len(told), 1, told)

    def test_password_is_in_no_environment_unless_it_was_given_as_a_trial_s_url(self):
        for way, parameters in WAYS.items():
            for name, function in properties("AWS::Lambda::Function", **parameters).items():
                with self.subTest(f"{name}, {way}"):
                    self.assertEqual("DATABASE_URL" in function["Environment"]["Variables"], way == "by URL")

    def test_with_iam_every_function_knows_where_the_database_is(self):
        for name, function in properties("AWS::Lambda::Function", **WAYS["by IAM"]).items():
            with self.subTest(name):
                self.assertLessEqual(WITH_IAM, function["Environment"]["Variables"].keys())

    def test_with_iam_each_function_signs_in_as_the_user_of_its_work_and_only_the_migrator_by_secret(self):
        functions = properties("AWS::Lambda::Function", **WAYS["by IAM"])
        told = {name: function["Environment"]["Variables"] for name, function in functions.items()}
        migrator = told.pop("MigratorFunction")
        self.assertIn("DATABASE_SECRET_ARN", migrator)
        self.assertEqual(migrator["DATABASE_LOGINS"], "iam")
        for name, variables in told.items():
            with self.subTest(name):
                work = "Consumer" if name.endswith("ConsumerFunction") else name.removesuffix("Function")
                words = re.sub(r"(?<!^)(?=[A-Z])", "_", work).lower()
                self.assertEqual(variables["DATABASE_IAM_USER"], f"tailcar_{words}_login")

    def test_environment_fits_into_four_kilobytes(self):
        for way, parameters in WAYS.items():
            for name, function in properties("AWS::Lambda::Function", **parameters).items():
                with self.subTest(f"{name}, {way}"):
                    # A queue's URL is longer than the reference to it, by 60 characters at most.
                    size = sum(len(key) + len(str(value)) + 200 for key, value in function["Environment"]["Variables"].items())
                    self.assertLess(size, 4096 * 2)


class Runs(unittest.TestCase):
    def test_scheduled_run_that_the_next_minute_repeats_is_not_retried(self):
        for name, schedule in properties("AWS::Scheduler::Schedule").items():
            if schedule["ScheduleExpression"] == "rate(1 minute)":
                with self.subTest(name):
                    self.assertEqual(schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"], 0)

    def test_every_schedule_has_a_retry_policy_and_leaves_what_it_could_not_deliver_in_a_queue(self):
        for name, schedule in properties("AWS::Scheduler::Schedule").items():
            with self.subTest(name):
                self.assertIn("RetryPolicy", schedule["Target"])
                queue = schedule["Target"]["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
                self.assertEqual(queue, "ScheduleDeadLetterQueue")

    def test_lambda_repeats_no_scheduled_run(self):
        repeated = properties("AWS::Lambda::EventInvokeConfig")
        self.assertEqual(len(properties("AWS::Scheduler::Schedule")), len(repeated))
        for name, config in repeated.items():
            with self.subTest(name):
                self.assertEqual(config["MaximumRetryAttempts"], 0)

    def test_every_function_but_the_migrator_is_updated_after_the_schema(self):
        functions = {name: part for name, part in whole()["Resources"].items() if part["Type"] == "AWS::Lambda::Function"}
        for name, function in functions.items():
            with self.subTest(name):
                self.assertEqual("Schema" in str(function.get("DependsOn")), name != "MigratorFunction")

    def test_migrator_has_time_to_answer_before_cloudformation_gives_up(self):
        migration = properties("Custom::Schema")["Schema"]
        for profile in ("standard", "local"):
            timeout = properties("AWS::Lambda::Function", Profile=profile)["MigratorFunction"]["Timeout"]
            self.assertLess(timeout, migration["ServiceTimeout"])


class Bounds(unittest.TestCase):
    def test_function_writes_to_a_log_group_that_forgets(self):
        groups = properties("AWS::Logs::LogGroup")
        for name, function in properties("AWS::Lambda::Function").items():
            with self.subTest(name):
                self.assertGreater(groups[function["LoggingConfig"]["LogGroup"]["Ref"]]["RetentionInDays"], 0)

    def test_nothing_reserves_concurrency_unless_asked_for(self):
        for name, function in properties("AWS::Lambda::Function").items():
            with self.subTest(name):
                self.assertNotIn("ReservedConcurrentExecutions", function)
        asked = properties("AWS::Lambda::Function", CollectorReservedConcurrency=2)
        self.assertEqual(asked["CollectorFunction"]["ReservedConcurrentExecutions"], 2)

    def test_processor_is_one_parameter(self):
        for name, function in properties("AWS::Lambda::Function", Architecture="arm64").items():
            with self.subTest(name):
                self.assertEqual(function["Architectures"], ["arm64"])


if __name__ == "__main__":
    unittest.main()
