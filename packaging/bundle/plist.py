"""Info.plist and entitlements from the settings, with the keys that Briefcase's template writes."""

from __future__ import annotations

from typing import Any

from bundle.project import APP, Bundle


def info(bundle: Bundle) -> dict[str, Any]:
    """The dictionary of Info.plist."""
    minimum = ".".join(map(str, bundle.min_os))
    return {
        "CFBundleDevelopmentRegion": "en",
        "CFBundleExecutable": bundle.name,
        "CFBundleIconFile": f"{APP}.icns",
        "CFBundleIdentifier": bundle.identifier,
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleName": bundle.name,
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": bundle.version,
        "CFBundleVersion": "1",
        "LSMinimumSystemVersion": minimum,
        "MainModule": APP,
        "NSPrincipalClass": "NSApplication",
        "CFBundleDocumentTypes": [_document(bundle, id) for id in bundle.document_types],
        "UTExportedTypeDeclarations": [_declaration(bundle, id) for id in bundle.document_types],
        **bundle.info,
    }


def _document(bundle: Bundle, id: str) -> dict[str, Any]:
    return {
        "CFBundleTypeName": bundle.document_types[id]["description"],
        "CFBundleTypeRole": "Viewer",
        "CFBundleTypeIconFile": f"{APP}-{id}.icns",
        "LSHandlerRank": "Owner",
        "LSItemContentTypes": [f"{bundle.identifier}.{id}"],
    }


def _declaration(bundle: Bundle, id: str) -> dict[str, Any]:
    kind = bundle.document_types[id]
    return {
        "UTTypeConformsTo": ["public.data", "public.content"],
        "UTTypeDescription": kind["description"],
        "UTTypeIconFile": f"{APP}-{id}.icns",
        "UTTypeIdentifier": f"{bundle.identifier}.{id}",
        "UTTypeReferenceURL": kind["url"],
        "UTTypeTagSpecification": {
            "public.filename-extension": [kind["extension"]],
            "public.mime-type": [kind["mime_type"]],
        },
    }
