/// The messages of opentelemetry-proto 1.x that a record may hold, as tables: which field has which JSON name and form.
///
/// Fields that are not listed are skipped, as every protobuf reader does with those of later versions.
package enum OTLPMessage: Int, CaseIterable, Sendable {
  case anyValue, arrayValue, keyValueList, keyValue, entityReference, resource, scope, logRecord
  case span, spanEvent, spanLink, spanStatus
  case metric, gauge, sum, histogram, exponentialHistogram, summary
  case numberPoint, histogramPoint, exponentialPoint, buckets, summaryPoint, quantile, exemplar

  /// By field number; nil: unknown.
  package var fields: [OTLPField?] { Self.tables[rawValue] }

  /// The field of this JSON name; nil: it has no such field.
  package func field(_ name: ScannedString, in text: Span<UInt8>) -> OTLPField? {
    guard !name.hasEscapes else { return field(name.string(in: text)) }
    for field in fields { if let field, text.equals(field.name, at: name.range) { return field } }
    return nil
  }

  private func field(_ name: String) -> OTLPField? { fields.first { $0?.name.description == name } ?? nil }

  /// The field of a JSON name that it has.
  package subscript(name: String) -> OTLPField {
    guard let field = field(name) else { preconditionFailure("no field \(name)") }
    return field
  }

  private static let tables: [[OTLPField?]] = allCases.map { message in
    let fields = values[message] ?? records[message] ?? metrics[message] ?? points[message] ?? []
    let largest = fields.map(\.number).max() ?? 0
    return (0...largest).map { number in fields.first { $0.number == number } }
  }
}

/// One field of a message.
package struct OTLPField: Sendable {
  package enum Form: Sendable {
    case string, base64, hexadecimal
    /// JSON numbers: `varint32` is signed, as int32 and enumerations are.
    case varint32, unsigned32, zigzag32, fixed32, double, bool
    /// JSON strings of decimal digits, as proto3 has 64 bits.
    case signed64, unsigned64, fixed64, signedFixed64
    case message(OTLPMessage)
  }

  package let number: Int
  /// In JSON.
  package let name: StaticString
  /// The name with quotes and a colon.
  fileprivate let key: [UInt8]
  package let form: Form
  package var isRepeated = false
  /// One of several fields of which the last one counts.
  package var isChoice = false

  init(_ number: Int, _ name: StaticString, _ form: Form, isRepeated: Bool = false, isChoice: Bool = false) {
    (self.number, self.name, self.form) = (number, name, form)
    key = Array("\"\(name)\":".utf8)
    (self.isRepeated, self.isChoice) = (isRepeated, isChoice)
  }

  static func list(_ number: Int, _ name: StaticString, _ form: Form) -> OTLPField {
    OTLPField(number, name, form, isRepeated: true)
  }
  static func choice(_ number: Int, _ name: StaticString, _ form: Form) -> OTLPField {
    OTLPField(number, name, form, isChoice: true)
  }
  static func attributes(_ number: Int, _ name: StaticString = "attributes") -> OTLPField {
    .list(number, name, .message(.keyValue))
  }
  static func dropped(_ number: Int, _ name: StaticString = "droppedAttributesCount") -> OTLPField {
    OTLPField(number, name, .unsigned32)
  }
  static func points(_ message: OTLPMessage) -> OTLPField { .list(1, "dataPoints", .message(message)) }
  static let temporality = OTLPField(2, "aggregationTemporality", .varint32)
  static let start = OTLPField(2, "startTimeUnixNano", .fixed64)
  static let time = OTLPField(3, "timeUnixNano", .fixed64)
}

extension OTLPField.Form {
  /// Whether JSON has a string of digits for it.
  var isQuoted: Bool {
    switch self {
    case .signed64, .unsigned64, .fixed64, .signedFixed64: true
    default: false
    }
  }

  /// As protobuf's tags have it.
  var wireType: Int {
    switch self {
    case .string, .base64, .hexadecimal, .message: 2
    case .double, .fixed64, .signedFixed64: 1
    case .fixed32: 5
    default: 0
    }
  }
}

/// Fields that a writer names.
extension OTLPField {
  static let stringValue = OTLPMessage.anyValue["stringValue"], boolValue = OTLPMessage.anyValue["boolValue"]
  static let intValue = OTLPMessage.anyValue["intValue"], doubleValue = OTLPMessage.anyValue["doubleValue"]
  static let arrayValue = OTLPMessage.anyValue["arrayValue"], kvlistValue = OTLPMessage.anyValue["kvlistValue"]
  static let bytesValue = OTLPMessage.anyValue["bytesValue"], elements = OTLPMessage.arrayValue["values"]
  static let members = OTLPMessage.keyValueList["values"]
  static let key = OTLPMessage.keyValue["key"], value = OTLPMessage.keyValue["value"]
  /// The first field of an element of a request's outer list.
  package static let resource = OTLPField(1, "resource", .message(.resource))
  /// The same of the list in the middle.
  package static let scope = OTLPField(1, "scope", .message(.scope))
}

extension OTLPMessage {
  private static let values: [OTLPMessage: [OTLPField]] = [
    .anyValue: [
      .choice(1, "stringValue", .string), .choice(2, "boolValue", .bool), .choice(3, "intValue", .signed64),
      .choice(4, "doubleValue", .double), .choice(5, "arrayValue", .message(.arrayValue)),
      .choice(6, "kvlistValue", .message(.keyValueList)), .choice(7, "bytesValue", .base64),
    ],
    .arrayValue: [.list(1, "values", .message(.anyValue))],
    .keyValueList: [.list(1, "values", .message(.keyValue))],
    .keyValue: [OTLPField(1, "key", .string), OTLPField(2, "value", .message(.anyValue))],
    .entityReference: [
      OTLPField(1, "schemaUrl", .string), OTLPField(2, "type", .string), .list(3, "idKeys", .string),
      .list(4, "descriptionKeys", .string),
    ],
    .resource: [.attributes(1), .dropped(2), .list(3, "entityRefs", .message(.entityReference))],
    .scope: [OTLPField(1, "name", .string), OTLPField(2, "version", .string), .attributes(3), .dropped(4)],
  ]

  private static let records: [OTLPMessage: [OTLPField]] = [
    .logRecord: [
      OTLPField(1, "timeUnixNano", .fixed64), OTLPField(2, "severityNumber", .varint32),
      OTLPField(3, "severityText", .string), OTLPField(5, "body", .message(.anyValue)), .attributes(6), .dropped(7),
      OTLPField(8, "flags", .fixed32), OTLPField(9, "traceId", .hexadecimal), OTLPField(10, "spanId", .hexadecimal),
      OTLPField(11, "observedTimeUnixNano", .fixed64), OTLPField(12, "eventName", .string),
    ],
    .span: [
      OTLPField(1, "traceId", .hexadecimal), OTLPField(2, "spanId", .hexadecimal),
      OTLPField(3, "traceState", .string), OTLPField(4, "parentSpanId", .hexadecimal), OTLPField(5, "name", .string),
      OTLPField(6, "kind", .varint32), OTLPField(7, "startTimeUnixNano", .fixed64),
      OTLPField(8, "endTimeUnixNano", .fixed64), .attributes(9), .dropped(10),
      .list(11, "events", .message(.spanEvent)), .dropped(12, "droppedEventsCount"),
      .list(13, "links", .message(.spanLink)), .dropped(14, "droppedLinksCount"),
      OTLPField(15, "status", .message(.spanStatus)), OTLPField(16, "flags", .fixed32),
    ],
    .spanEvent: [OTLPField(1, "timeUnixNano", .fixed64), OTLPField(2, "name", .string), .attributes(3), .dropped(4)],
    .spanLink: [
      OTLPField(1, "traceId", .hexadecimal), OTLPField(2, "spanId", .hexadecimal),
      OTLPField(3, "traceState", .string), .attributes(4), .dropped(5), OTLPField(6, "flags", .fixed32),
    ],
    .spanStatus: [OTLPField(2, "message", .string), OTLPField(3, "code", .varint32)],
  ]

  private static let metrics: [OTLPMessage: [OTLPField]] = [
    .metric: [
      OTLPField(1, "name", .string), OTLPField(2, "description", .string), OTLPField(3, "unit", .string),
      .choice(5, "gauge", .message(.gauge)), .choice(7, "sum", .message(.sum)),
      .choice(9, "histogram", .message(.histogram)),
      .choice(10, "exponentialHistogram", .message(.exponentialHistogram)),
      .choice(11, "summary", .message(.summary)), .attributes(12, "metadata"),
    ],
    .gauge: [.points(.numberPoint)],
    .sum: [.points(.numberPoint), .temporality, OTLPField(3, "isMonotonic", .bool)],
    .histogram: [.points(.histogramPoint), .temporality],
    .exponentialHistogram: [.points(.exponentialPoint), .temporality],
    .summary: [.points(.summaryPoint)],
  ]

  private static let points: [OTLPMessage: [OTLPField]] = [
    .numberPoint: [
      .attributes(7), .start, .time, .choice(4, "asDouble", .double), .choice(6, "asInt", .signedFixed64),
      .list(5, "exemplars", .message(.exemplar)), OTLPField(8, "flags", .unsigned32),
    ],
    .histogramPoint: [
      .attributes(9), .start, .time, OTLPField(4, "count", .fixed64), OTLPField(5, "sum", .double),
      .list(6, "bucketCounts", .fixed64), .list(7, "explicitBounds", .double),
      .list(8, "exemplars", .message(.exemplar)), OTLPField(10, "flags", .unsigned32),
      OTLPField(11, "min", .double), OTLPField(12, "max", .double),
    ],
    .exponentialPoint: [
      .attributes(1), .start, .time, OTLPField(4, "count", .fixed64), OTLPField(5, "sum", .double),
      OTLPField(6, "scale", .zigzag32), OTLPField(7, "zeroCount", .fixed64),
      OTLPField(8, "positive", .message(.buckets)), OTLPField(9, "negative", .message(.buckets)),
      OTLPField(10, "flags", .unsigned32), .list(11, "exemplars", .message(.exemplar)),
      OTLPField(12, "min", .double), OTLPField(13, "max", .double), OTLPField(14, "zeroThreshold", .double),
    ],
    .buckets: [OTLPField(1, "offset", .zigzag32), .list(2, "bucketCounts", .unsigned64)],
    .summaryPoint: [
      .attributes(7), .start, .time, OTLPField(4, "count", .fixed64), OTLPField(5, "sum", .double),
      .list(6, "quantileValues", .message(.quantile)), OTLPField(8, "flags", .unsigned32),
    ],
    .quantile: [OTLPField(1, "quantile", .double), OTLPField(2, "value", .double)],
    .exemplar: [
      .attributes(7, "filteredAttributes"), OTLPField(2, "timeUnixNano", .fixed64),
      .choice(3, "asDouble", .double), .choice(6, "asInt", .signedFixed64), OTLPField(4, "spanId", .hexadecimal),
      OTLPField(5, "traceId", .hexadecimal),
    ],
  ]
}

extension [UInt8] {
  /// Appends a field's name with quotes and a colon.
  package mutating func append(keyOf field: OTLPField) { append(contentsOf: field.key) }

  /// Appends a number as protobuf has it: seven bits a byte, the lowest first.
  package mutating func append(varint number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }
}
