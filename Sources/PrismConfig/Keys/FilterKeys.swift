import PrismProtocol

/// An entry of `redact` as it was written.
struct RedactionDraft: Sendable, Equatable {
  var field: FieldPath?
  var action: TypeFilters.Redaction.Action?

  static let keys = KeyTable(
    [
      ConfigurationKey<RedactionDraft>(
        "field", .fieldPath, optional: \.field, isRequired: true, "the path to the value"),
      ConfigurationKey<RedactionDraft>(
        "action", .choice, optional: \.action, isRequired: true,
        "`drop` removes the member, `mask` makes it \"***\", `hash` a keyed hash"),
    ], defaults: RedactionDraft())
}

/// `collapse` as it was written.
struct CollapseDraft: Sendable, Equatable {
  var by: [FieldPath]?
  var seconds = 60

  static let keys = KeyTable(
    [
      ConfigurationKey<CollapseDraft>(
        "by", .list(of: .fieldPath, "a list of fields, at least one", atLeast: 1), optional: \.by, isRequired: true,
        "the fields in which equal reports are equal"),
      ConfigurationKey<CollapseDraft>(
        "second", .integer(1...3600, unit: "seconds"), at: \.seconds, "how long the first one waits for others"),
    ], defaults: CollapseDraft())
}

extension ValueForm where Value == TypeFilters.Collapse {
  static var collapse: Self {
    ValueForm<CollapseDraft>.object(CollapseDraft.keys, "a map like {by: [reason], second: 60}")
      .converted(
        { TypeFilters.Collapse(by: $0.by ?? [], seconds: $0.seconds) },
        back: { CollapseDraft(by: $0.by, seconds: $0.seconds) })
  }
}

extension ValueForm where Value == FieldPath {
  static var fieldPath: Self {
    let allowed = "a path of keys joined with dots, * for any, at most 256 bytes and 16 keys"
    let form = ValueForm<String>.string(allowed) { FieldPath($0) != nil }
    return ValueForm(allowed: allowed, schema: form.schema) { node, key, checker in
      form.read(node, key, &checker).flatMap { FieldPath($0) }
    } show: {
      .string($0.text)
    }
  }
}

extension ValueForm where Value == [TypeFilters.Redaction] {
  static var redactions: Self {
    let entry = ValueForm<RedactionDraft>.object(RedactionDraft.keys, "a map like {field: user.email, action: hash}")
    return ValueForm<[RedactionDraft]>.list(of: entry, "a list of fields, at least one", atLeast: 1)
      .converted(
        { drafts in
          drafts.compactMap { draft in
            guard let field = draft.field, let action = draft.action else { return nil }
            return TypeFilters.Redaction(field, action)
          }
        }, back: { $0.map { RedactionDraft(field: $0.field, action: $0.action) } })
  }
}

extension ValueForm where Value == Double {
  /// Of reports: over 0 to 1.
  static var share: Self {
    let allowed = "a number over 0, at most 1, for example 0.1"
    let schema: JSONValue = ["type": "number", "exclusiveMinimum": 0, "maximum": 1]
    return ValueForm(allowed: allowed, schema: Schema.orEnvironment(schema)) { node, key, checker in
      guard let scalar = checker.scalar(node, key, mustBe: allowed) else { return nil }
      let isDecimal = scalar.text.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".")
      }
      if isDecimal, let value = Double(scalar.text), value > 0, value <= 1 { return value }
      checker.refuse(node, key, mustBe: allowed)
      return nil
    } show: {
      .double($0)
    }
  }
}
