"""Seeded user turns: complete prompts and mere openings that the target finishes, of every kind a chat sees."""

from __future__ import annotations

import json
import random
from pathlib import Path

WORDS: dict[str, list[str]] = json.loads((Path(__file__).parent / "topics.json").read_text("utf-8"))
ANIMALS = WORDS["animals"]
CITIES = WORDS["cities"]
CODE_TASKS = WORDS["code_tasks"]
CONCEPTS = WORDS["concepts"]
COUNTRIES = WORDS["countries"]
FOLLOW_UPS = WORDS["follow_ups"]
FOODS = WORDS["foods"]
JOBS = WORDS["jobs"]
LANGUAGES = WORDS["languages"]
LETTERS = WORDS["letters"]
LISTS = WORDS["lists"]
OBJECTS = WORDS["objects"]
OPENINGS = WORDS["openings"]
PEOPLE = WORDS["people"]
PROGRAMMING = WORDS["programming"]
SENTENCES = WORDS["sentences"]
SQL_TABLES = WORDS["sql_tables"]
THEMES = WORDS["themes"]
TOPICS = WORDS["topics"]


def code(r: random.Random) -> str:
    task, language = r.choice(CODE_TASKS), r.choices(PROGRAMMING, [8] + [1] * (len(PROGRAMMING) - 1))[0]
    return r.choice(
        (
            f"Write a {language} function that {task}.",
            f"Write a {language} function that {task}. Explain how it works.",
            f"Can you write a {language} program that {task}?",
            f"How do I write a function in {language} that {task}?",
            f"Show me {language} code that {task}.",
            f"Write a short {language} script that {task}, with comments.",
            f"Create a {language} class with a method that {task}.",
            f"Write unit tests in {language} for a function that {task}.",
            f"Implement a function in {language} that {task} and handles bad input.",
        )
    )


def formats(r: random.Random) -> str:
    table, other = r.sample(SQL_TABLES, 2)
    return r.choice(
        (
            f"Write a SQL query that lists all {table} added in the last {r.randint(2, 90)} days.",
            f"Write a SQL query that counts the {table} for each of the {other}.",
            f"Create a SQL table for {table}.",
            f"Give me an example of a JSON object that describes {r.choice(OBJECTS)}.",
            f"Write an HTML page with a table of {table}.",
            f"Write CSS that makes {r.choice(('a button', 'a heading', 'a menu', 'an image', 'a card'))} look modern.",
            f"Make a markdown table comparing {r.choice(TOPICS)} and {r.choice(TOPICS)}.",
            f"Write a regular expression that matches {r.choice(('a date', 'an email address', 'a phone number', 'a URL'))}.",
            f"Write a bash command that {r.choice(('finds', 'counts', 'sorts'))} all {r.choice(('images', 'logs'))}.",
        )
    )


def lists(r: random.Random) -> str:
    count, what = r.choice((3, 5, 5, 6, 7, 8, 10, 10, 12, 15, 20)), r.choice(LISTS)
    return r.choice(
        (
            f"List {count} {what}.",
            f"Give me {count} {what}.",
            f"Name {count} {what} and describe each in one sentence.",
            f"What are the {count} most important {what}?",
            f"Make a numbered list of {count} {what}.",
            f"List {count} {what} in alphabetical order.",
            f"Give me a list of {r.choice(FOODS)} recipes with their ingredients.",
            f"List the steps to {r.choice(THEMES)}.",
            f"Count from {r.randint(1, 40)} to {r.randint(41, 120)}.",
            f"Write the multiplication table of {r.randint(2, 19)}.",
        )
    )


def prose(r: random.Random) -> str:
    return r.choice(
        (
            f"Write a short story about {r.choice(ANIMALS)} in {r.choice(CITIES)}.",
            f"Write a story about {r.choice(JOBS)} who finds {r.choice(OBJECTS)}.",
            f"Write a poem about {r.choice(TOPICS)}.",
            f"Write a paragraph about {r.choice(TOPICS)}.",
            f"Write an essay on {r.choice(TOPICS)}.",
            f"Describe {r.choice(CITIES)} to someone who has never been there.",
            f"Write a dialogue between {r.choice(JOBS)} and {r.choice(ANIMALS)}.",
            f"Write a product description for {r.choice(OBJECTS)}.",
            f"Write a bedtime story for a child who likes {r.choice(ANIMALS)}.",
            f"Write a speech about {r.choice(TOPICS)}.",
            f"Write a biography of {r.choice(PEOPLE)}.",
        )
    )


def translation(r: random.Random) -> str:
    sentence, language = r.choice(SENTENCES), r.choice(LANGUAGES)
    return r.choice(
        (
            f"Translate to {language}: {sentence}",
            f'Translate "{sentence}" into {language}.',
            f'How do you say "{sentence}" in {language}?',
            f"Translate the following sentence into {language}:\n\n{sentence}",
        )
    )


def arithmetic(r: random.Random) -> str:
    a, b, c = r.randint(2, 400), r.randint(2, 90), r.randint(2, 30)
    return r.choice(
        (
            f"What is {a} {r.choice(('+', '-', '*', '/', 'plus', 'minus', 'times', 'divided by'))} {b}?",
            f"Calculate {a} + {b} * {c} and show each step.",
            f"I have {a} {r.choice(LISTS)} and give away {b}. How many are left?",
            f"A train travels at {a} km/h for {c} hours. How far does it go?",
            f"What is {c}% of {a}?",
            f"Solve for x: {c}x + {b} = {a}.",
            f"A shirt costs {a} dollars and is reduced by {c} percent. What is the new price?",
            f"What is the average of {a}, {b} and {c}?",
            f"If {c} apples cost {b} dollars, how much do {a} apples cost?",
            f"Convert {a} {r.choice(('miles to kilometres', 'pounds to kilograms', 'Celsius to Fahrenheit', 'minutes to hours'))}.",
        )
    )


def explanation(r: random.Random) -> str:
    concept, other = r.sample(CONCEPTS, 2)
    return r.choice(
        (
            f"Explain {concept}.",
            f"Explain {concept} to a {r.choice(('child', 'student', 'beginner', 'ten-year-old'))}.",
            f"What is {concept}?",
            f"What is the difference between {concept} and {other}?",
            f"How does {concept} work?",
            f"Why is {concept} important?",
            f"Tell me about {concept} in two sentences.",
            f"Summarise the main ideas of {concept}.",
            f"What are the advantages and disadvantages of {concept}?",
            f"Give me an example of {concept}.",
        )
    )


def questions(r: random.Random) -> str:
    return r.choice(
        (
            f"What is the capital of {r.choice(COUNTRIES)}?",
            f"Tell me about the history of {r.choice(COUNTRIES)}.",
            f"What is {r.choice(COUNTRIES)} famous for?",
            f"Who was {r.choice(PEOPLE)}?",
            f"How do I {r.choice(THEMES)}?",
            f"What should I know before I {r.choice(THEMES)}?",
            f"How do I cook {r.choice(FOODS)}?",
            f"What does {r.choice(JOBS)} do all day?",
            f"Plan a {r.randint(2, 7)}-day trip to {r.choice(CITIES)}.",
            f"What do {r.choice(ANIMALS)} eat?",
            f"Which is better, {r.choice(FOODS)} or {r.choice(FOODS)}?",
            f"I want to {r.choice(THEMES)}. Where do I start?",
        )
    )


def writing(r: random.Random) -> str:
    sentence = " ".join(r.sample(SENTENCES, r.randint(1, 3)))
    return r.choice(
        (
            f"Write {r.choice(LETTERS)}.",
            f"Write a polite version of this: {sentence}",
            f"Rewrite this in simpler words: {sentence}",
            f"Correct the grammar: {sentence.lower().replace('.', '')}",
            f"Summarise this text in one sentence: {sentence}",
            f"Repeat the following text exactly: {sentence}",
            f"Turn this into bullet points: {sentence}",
            f"Continue this text: {sentence}",
            f"What is the tone of this message? {sentence}",
            f"Find the nouns in this sentence: {sentence}",
            f"Draft {r.choice(LETTERS)} in {r.randint(2, 6)} sentences.",
        )
    )


KINDS = {
    code: 20, formats: 7, lists: 13, prose: 11, translation: 8, arithmetic: 10, explanation: 13, questions: 10, writing: 8,
}  # fmt: skip


def user_turn(r: random.Random, first: bool) -> tuple[str, bool]:
    """A user turn and whether it is complete; an incomplete one (also "") is for the target to finish."""
    draw = r.random()
    if draw < 0.18:
        return "", False
    if draw < 0.36:
        return r.choice(OPENINGS), False
    if not first and draw < 0.68:
        return r.choice(FOLLOW_UPS), True
    kind = r.choices(list(KINDS), list(KINDS.values()))[0]
    text = kind(r)
    if r.random() < 0.1:
        text = text.rstrip(".?")
    if r.random() < 0.08:
        text = text[0].lower() + text[1:]
    if r.random() < 0.08:
        words = text.split(" ")
        return " ".join(words[: r.randint(2, max(2, len(words) - 1))]), False
    return text, True
