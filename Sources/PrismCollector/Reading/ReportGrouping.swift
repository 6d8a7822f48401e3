/// How reports are counted together: by time, and by one more word.
struct ReportGrouping: Sendable, Equatable {
  enum Key: Sendable, Equatable {
    case nothing, type, namespace, device, kind
    /// A field of the meta, by its path of keys.
    case meta([String])
  }

  /// The width of a bucket of time in milliseconds, from 1 on.
  var bucketMilliseconds: Int64
  var key: Key = .nothing

  /// One bucket for all time.
  static let wholeTime: Int64 = 1 << 62
}
