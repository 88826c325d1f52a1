"""The language of the whole program: our catalogues, Qt's own texts, and the way numbers are written and read."""

from __future__ import annotations

import locale
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from app.core.words import chosen_language, use_language

LOCALES = {"en": QLocale(QLocale.Language.English, QLocale.Country.UnitedStates),
           "de": QLocale(QLocale.Language.German, QLocale.Country.Germany)}  # fmt: skip


def speak(setting: str, application: QCoreApplication) -> str:
    """Takes ``setting`` ("system" or a code) into use for what is shown from now on; the code that came of it."""
    code = chosen_language(setting, QLocale.system().uiLanguages())
    use_language(code, Path(str(files("resources") / "locale")))
    QLocale.setDefault(LOCALES[code])
    locale.setlocale(locale.LC_NUMERIC, "C")  # Qt sets the user's locale, and "0,5" would break C parsers in libraries
    before = application.findChild(QTranslator, "qtbase")
    if before is not None:
        application.removeTranslator(before)
        before.setParent(None)
    translator = QTranslator(application)
    translator.setObjectName("qtbase")
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if code != "en" and translator.load(f"qtbase_{code}", folder):
        application.installTranslator(translator)
    return code
