import PrismProtocol

/// An OTLP export request as far as its records, which `OTLPRecordReader` reads one by one.
struct OTLPRequest: Sendable, Equatable {
  /// The records of one scope of one resource.
  struct Group: Sendable, Equatable {
    var origin = OTLPOrigin()
    /// The scope as a JSON object, its schema's URL in it; empty: not given.
    var scope: [UInt8] = []
    /// In the body.
    var records: [Range<Int>] = []
  }

  var groups: [Group] = []
  /// Records that cannot become reports under any configuration, by reason.
  var unusable: [String: Int] = [:]

  /// The records of a group can't become reports.
  mutating func leaveOut(_ group: inout Group, _ reason: String) {
    if !group.records.isEmpty { unusable[reason, default: 0] += group.records.count }
    group.records = []
  }

  var recordCount: Int { groups.reduce(0) { $0 + $1.records.count } }
}

/// The resource that records come from.
struct OTLPOrigin: Sendable, Equatable {
  /// As a JSON object, its schema's URL in it; empty: not given.
  var resource: [UInt8] = []
  /// `prism.namespace`.
  var namespace: String?
  /// `service.name`, `service.version`.
  var serviceName: String?, serviceVersion: String?

  mutating func take(attribute key: String, _ value: String) {
    switch key {
    case "prism.namespace": namespace = value
    case "service.name": serviceName = value
    case "service.version": serviceVersion = value
    default: break
    }
  }
}

/// A log record, a span or a metric.
struct OTLPRecord: Sendable, Equatable {
  /// The members of its JSON object, without braces.
  var members: [UInt8] = []
  /// Milliseconds since 1970; nil: it carries no time.
  var time: Int64?
  var eventName: String?
  /// SEVERITY_NUMBER_ERROR (17) or above.
  var isError = false
  /// Only of errors.
  var exception = OTLPException()

  /// The first time that a report may have counts.
  mutating func take(unixNanoseconds: UInt64) {
    let milliseconds = Int64(unixNanoseconds / 1_000_000)
    if time == nil, CreatedTime.least...CreatedTime.greatest ~= milliseconds { time = milliseconds }
  }
}

/// The attributes `exception.*` of a log record.
struct OTLPException: Sendable, Equatable {
  var type: String?, message: String?, stacktrace: String?

  var isEmpty: Bool { type == nil && message == nil && stacktrace == nil }

  mutating func take(attribute key: String, _ value: String) {
    switch key {
    case "exception.type": type = value
    case "exception.message": message = value
    case "exception.stacktrace": stacktrace = value
    default: break
    }
  }
}

/// Why a request is refused as a whole: the status of the answer, and a reason without any of its content.
struct OTLPFault: Error, Equatable, Sendable {
  let status: Int
  let message: String
  init(_ status: Int, _ message: String) { (self.status, self.message) = (status, message) }

  static let noRequest = OTLPFault(400, "the body must be a JSON object with a list of what an exporter sends")
  static let tooManyBytes = OTLPFault(
    413, "the body unpacks to more than \(OTLPLimits.bodyBytesMax) bytes; lower the exporter's batch size")
  static let tooManyOriginBytes = OTLPFault(
    413, "the resources and scopes have more than \(OTLPLimits.originBytesMax) bytes; send the request in parts")
  static let tooManyRecords = OTLPFault(
    413, "the request has more than \(OTLPLimits.recordsMax) records; lower the exporter's batch size")
}

/// The size of one request.
enum OTLPLimits {
  /// As it came, and unpacked: that of OpenTelemetry's collector.
  static let bodyBytesMax = 20 * 1024 * 1024
  /// Of one record as it came, and as JSON: escapes may make it larger.
  static let recordBytesMax = 4 * 1024 * 1024, recordTextBytesMax = 8 * 1024 * 1024
  /// Of all resources and scopes as JSON.
  static let originBytesMax = 8 * 1024 * 1024
  static let recordsMax = 200_000
  /// Resources and scopes of one request.
  static let groupsMax = 1_000
}
