"""Which tests are not run for every change: ``make test`` leaves out what is marked ``long``, ``make long`` runs it.

One case of everything that can break by itself stays in the first tier. Here is what was left out of it, by parts of
the tests' names ("a & b": both): what takes long by itself, and what differs from its neighbours only in which kernel
is compiled. An entry that fits no test any more is an error, so that the list cannot grow old.
"""

from __future__ import annotations

# Programs that are started and killed, clusters, limits of memory, everything that waits for real time to pass.
SLOW = (
    "chaos/test_kill.py",
    "chaos/test_ray.py",
    "cuts/test_graph_cut.py::test_two_parts_are_a_minimum_cut & communities",
    "cuts/test_graph_cut.py::test_two_parts_are_a_minimum_cut & grid",
    "cuts/test_graph_cut.py::test_two_parts_are_a_minimum_cut & regular",
    "data/test_pack.py::test_data_four_times_larger",
    "data/test_text.py::test_pages_that_were_passed_leave_memory",
    "estimators/test_behaviour.py::test_in_a_pipeline_a_search",
    "estimators/test_behaviour.py::test_losses_that_only_we_have",
    "lab/test_figures.py::test_every_chart_and_map",
    "lab/test_figures.py::test_nothing_stays_changed",
    "lab/test_figures.py::test_the_same_report_gives_the_same_files",
    "lab/test_lab.py::test_a_trial_of_every_experiment & batch-size",
    "lab/test_lab.py::test_a_trial_of_every_experiment & collisions",
    "lab/test_lab.py::test_a_trial_of_every_experiment & paper",
    "lab/test_lab.py::test_a_trial_of_every_experiment & regularisation",
    "lab/test_lab.py::test_a_trial_of_every_experiment & topologies",
    "lab/test_lab.py::test_readings_are_charts_with_words",
    "landscape/test_module_surface.py::test_the_way_of_a_net_and_its_plane",
    "messages/test_talking_modules.py::test_statistics_of_batches",
    "modules/test_module_data.py::test_processes_that_read_end",
    "modules/test_one_copy.py",
    "modules/test_own_loop.py::test_a_script_with_three_changed_lines",
    "modules/test_synchronous.py::test_a_run_goes_on_from_the_middle",
    "modules/test_synchronous.py::test_one_and_two_workers",
    "modules/test_synchronous.py::test_workers_of_torchrun",
    "modules/test_worker_death.py::test_a_program_is_interrupted_and_killed",
    "runtimes/test_local.py::test_it_comes_to_the_optimum & -1]",
    "sparse/test_sparse_training.py::test_every_strategy_in_one_memory",
    "sparse/test_sparse_cuda.py & [all]",
    "test_compiled.py::test_code_from_the_disk_calls_its_own_parts",
    "test_compiled.py::test_kernels_are_compiled_in_the_first_process",
    "test_examples.py::test_a_sparse_perceptron",
    "test_examples.py::test_example & own_loop.py",
    "test_examples.py::test_example & own_loss.py",
    "test_examples.py::test_example & text_pipeline.py",
    "test_examples.py::test_fashion_mnist",
    "test_losses.py::test_a_loss_of_ones_own_becomes_the_same_machine_code",
)

# Others of a kind of which the first tier has one or a few.
ALIKE = (
    "cli/test_predict.py::test_numbers",
    "cli/test_predict.py::test_several_classes",
    "cli/test_train.py::test_every_kind_of_label & poisson",
    "conformance/test_buffered_optimum.py",
    "conformance/test_buffers.py::test_a_mean_is_of_what_workers_have_merged",
    "conformance/test_buffers.py::test_estimators_pass_it_on",
    "conformance/test_buffers.py::test_no_sum_of_squares_is_lost",
    "conformance/test_buffers.py::test_one_of_the_workers_alone & dense-all",
    "conformance/test_buffers.py::test_terms_of_all_lengths",
    "conformance/test_buffers.py::test_they_come_to_where_serial_comes & dense",
    "conformance/test_buffers.py::test_they_come_to_where_serial_comes & hinge",
    "conformance/test_interactions.py::test_every_strategy_comes_to_the_optimum_of_one_worker & ffm",
    "conformance/test_losses_optimum.py::test_every_loss_comes_within_a_hundredth_of_its_optimum",
    "conformance/test_losses_optimum.py::test_several_classes & logistic",
    "conformance/test_losses_optimum.py::test_the_perceptron_separates",
    "conformance/test_no_update_lost.py::test_serial_counts",
    "conformance/test_ratings_strategies.py::test_other_rules_come_as_far",
    "conformance/test_ratings_strategies.py::test_workers_that_talk_come_as_far",
    "conformance/test_real_data.py & hinge",
    "conformance/test_real_data.py & 1/n",
    "conformance/test_real_data.py & -1]",
    "conformance/test_serial_transcription.py & [adam",
    "conformance/test_serial_transcription.py & [adagrad-0.005",
    "conformance/test_serial_transcription.py & [adagrad-wide",
    "conformance/test_serial_transcription.py & binary-0.0-False",
    "conformance/test_serial_transcription.py & dense-0.0-False",
    "conformance/test_serial_transcription.py & ftrl",
    "conformance/test_serial_transcription.py & momentum",
    "conformance/test_sparse_penalties.py::test_the_penalised_optimum",
    "conformance/test_strategies.py::test_a_far_intercept",
    "conformance/test_strategies.py::test_averaged_iterates",
    "conformance/test_strategies.py::test_columns_that_are_numbered_with_64_bits",
    "conformance/test_strategies.py::test_every_strategy_reaches & momentum",
    "conformance/test_strategies.py::test_every_strategy_reaches & ftrl-averaging",
    "conformance/test_strategies.py::test_every_strategy_reaches & adam-averaging",
    "conformance/test_strategies.py::test_squared_loss_with_the_other_rules",
    "data/test_generate.py::test_text_reads_back & .gz",
    "data/test_laid_out.py::test_a_copy_has_the_same_epochs & True-False",
    "estimators/test_agreement & -elasticnet",
    "estimators/test_agreement & -epsilon_insensitive",
    "estimators/test_agreement & -huber",
    "estimators/test_agreement & -l1",
    "estimators/test_agreement & -modified_huber",
    "estimators/test_agreement & -pa2",
    "estimators/test_agreement & -perceptron",
    "estimators/test_agreement & -squared_epsilon",
    "estimators/test_agreement & -squared_hinge",
    "estimators/test_agreement_sparse & -hinge",
    "estimators/test_agreement_sparse & -squared_error",
    "estimators/test_behaviour.py::test_several_workers_learn_as_well",
    "estimators/test_behaviour_of_regressor.py::test_a_line_is_found_through_noise",
    "estimators/test_contract.py::test_the_contract[HogwildClassifier(loss='log_loss'",
    "estimators/test_contract.py::test_the_contract[HogwildClassifier(max_iter=50,n_jobs=2",
    "estimators/test_contract.py::test_the_contract[HogwildOneClassSVM(max_iter=50,n_jobs=2",
    "estimators/test_contract.py::test_the_contract[HogwildRegressor(max_iter=50,n_jobs=2",
    "estimators/test_factor_estimators.py::test_the_contract & HogwildFMRegressor",
    "estimators/test_factor_estimators.py::test_early_stopping",
    "estimators/test_factor_estimators.py::test_it_learns_what_features_do_together",
    "estimators/test_passive_aggressive.py::test_each_step & 2",
    "lab/test_observing.py::test_counts_are_those_of_a_known_interleaving & [1]",
    "lab/test_observing.py::test_counts_are_those_of_a_known_interleaving & [3]",
    "lab/test_observing.py::test_counts_are_those_of_a_known_interleaving & [4]",
    "lab/test_observing.py::test_every_strategy_in_one_memory & strategy0",
    "landscape/test_linear_surface.py::test_gradient_and_products & huber",
    "landscape/test_linear_surface.py::test_gradient_and_products & epsilon",
    "landscape/test_linear_surface.py::test_several_classes & squared-hinge",
    "landscape/test_linear_surface.py::test_straight_losses",
    "landscape/test_linear_surface.py::test_the_loss_at_a_solution & hinge",
    "messages/test_module_conformance.py::test_comes_to_the_optimum & all to all",
    "messages/test_module_conformance.py::test_comes_to_the_optimum & elastic",
    "messages/test_module_conformance.py::test_comes_to_the_optimum & gossip",
    "messages/test_module_conformance.py::test_comes_to_the_optimum & parameter server, ",
    "messages/test_module_conformance.py::test_comes_to_the_optimum & synchronous, ",
    "messages/test_talking_conformance.py::test_comes_to_the_optimum & -local-",
    "messages/test_within.py::test_nodes_with_cores",
    "messages/test_within.py::test_every_row_of_a_burst & within1",
    "sparse/test_sparse_table.py::test_rows_of_all_widths",
    "sparse/test_sparse_training.py::test_the_table_follows_the_schedule",
    "test_benchmarks.py::test_every_tool_is_asked_for_the_same_objective",
    "test_factorisation.py::test_a_step_is_along_the_numerical_gradient & ffm-squared",
    "test_factorisation.py::test_a_step_is_along_the_numerical_gradient & fm-",
    "test_factorisation.py::test_one_worker_takes_the_steps_of_the_transcription & ffm",
    "test_factorisation.py::test_one_worker_takes_the_steps_of_the_transcription & fm-ftrl",
    "test_factorisation.py::test_scores_and_figures & binary",
    "test_factorisation.py::test_scores_and_figures & dense",
    "test_factorisation.py::test_what_fills_up & ffm",
    "test_factorisation.py::test_what_fills_up & ftrl",
    "test_schedules.py::test_optimal_is_that_of_scikit_learn & hinge",
    "training/test_autostep.py::test_a_rule_that_needs_no_step",
    "training/test_autostep.py::test_columns_that_a_sample_lacks",
    "training/test_autostep.py::test_without_a_rule_that_tapers",
    "training/test_budget.py::test_running_out_of_time_harms_no_rule",
    "training/test_resume.py::test_from_every_end_of_an_epoch & ftrl",
    "training/test_resume.py::test_from_every_end_of_an_epoch & momentum",
    "training/test_resume.py::test_from_everywhere_within_epochs & several classes",
    "training/test_starts_and_stalls.py::test_passive_aggressive_steps & -2",
)

LONG = SLOW + ALIKE


def is_long(name: str) -> bool:
    """Whether a test is left out of the first tier.

    >>> is_long("tests/chaos/test_kill.py::test_killed_and_resumed"), is_long("tests/test_run.py::test_a_run")
    (True, False)
    """
    return any(matches(entry, name) for entry in LONG)


def matches(entry: str, name: str) -> bool:
    """Whether all parts of an entry are in a name.

    >>> matches("test_a.py & two", "tests/test_a.py::test_numbers[two]")
    True
    """
    return all(part in name for part in entry.split(" & "))
