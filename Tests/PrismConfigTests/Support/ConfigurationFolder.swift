import Foundation
import Glibc
import PrismConfig
import PrismTestSupport

/// A fresh folder with configuration files, removed with the value's last reference.
final class ConfigurationFolder {
  let path: String

  /// - Parameter files: by their path below the folder; `prismd.yaml` is the daemon's own.
  init(_ files: [String: String] = [:]) throws {
    path = TemporaryFolder.make()
    for (name, text) in files { try write(name, text) }
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }  // a folder left in /tmp fails no test

  func write(_ name: String, _ text: String, mode: mode_t = 0o600) throws {
    try write(name, Array(text.utf8), mode: mode)
  }

  func write(_ name: String, _ bytes: [UInt8], mode: mode_t = 0o600) throws {
    let file = "\(path)/\(name)"
    if let slash = file.lastIndex(of: "/") { mkdir(String(file[..<slash]), 0o700) }
    let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw Failure(errno) }
    defer { close(descriptor) }
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count, fchmod(descriptor, mode) == 0 else {
      throw Failure(errno)
    }
  }

  func load(
    _ environment: [String: String] = [:], identityCheck: ClientIdentityCheck? = nil
  ) throws(ConfigurationFaults) -> LoadedConfiguration {
    try ConfigurationLoader(path: "\(path)/prismd.yaml", environment: environment, identityCheck: identityCheck).load()
  }

  /// The faults as they are printed, without the folder in front; empty for a sound configuration.
  func faultLines(
    _ environment: [String: String] = [:], identityCheck: ClientIdentityCheck? = nil
  ) -> [String] {
    do throws(ConfigurationFaults) {
      _ = try load(environment, identityCheck: identityCheck)
      return []
    } catch {
      return error.faults.map { $0.description.replacing(path + "/", with: "").replacing(path, with: ".") }
    }
  }

  struct Failure: Error {
    let code: Int32
    init(_ code: Int32) { self.code = code }
  }
}

extension CollectorChecks {
  /// Takes all that only a library can judge.
  static let none = CollectorChecks(
    storeFault: { _ in nil }, sealKeyFault: { _ in nil }, signingKeyFault: { _ in nil }, webKeysFault: { _ in nil },
    propertiesFault: { _ in nil }, identityFault: { _, _ in nil })
}
