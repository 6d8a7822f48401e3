import Glibc

enum DiskSpace {
  /// Bytes that may still be written to the disk of `folder`; nil if the system does not say.
  static func free(_ folder: String) -> Int? {
    var facts = statvfs()
    guard statvfs(folder, &facts) == 0 else { return nil }
    return Int(clamping: UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize)).partialValue)
  }
}
