"""Compiled simulation of an asynchronous parameter server: its events, its network, its nodes and their bursts.

The compiled loop does what :mod:`hogwild.runtimes.simulator.event_loop` does with the roles of
:mod:`hogwild.strategies.roles`, in the same order and with the same random numbers, so that both give the same run.
"""
