import Foundation
import Glibc
import PrismCurl
import PrismTestSupport

@testable import PrismCollector
@testable import PrismOutputs

/// Debian's clickhouse-server, with a folder and a port of its own.
final class ClickHouseServer: Sendable {
  private static let path = "/usr/sbin/clickhouse-server"
  static var isInstalled: Bool { access(path, X_OK) == 0 }

  private let folder = TemporaryFolder()
  private let program: StartedProgram
  let url: String
  let passwordFile: String

  init() async throws {
    let port = Self.freePort()
    url = "http://127.0.0.1:\(port)"
    passwordFile = folder("password")
    try "geheim\n".write(toFile: passwordFile, atomically: false, encoding: .utf8)
    let config = """
      <yandex><logger><level>none</level></logger><http_port>\(port)</http_port><listen_host>127.0.0.1</listen_host>
      <path>\(folder("data"))/</path><tmp_path>\(folder("tmp"))/</tmp_path><users_config>\(folder("users.xml"))</users_config>
      <default_profile>default</default_profile><default_database>default</default_database>
      <mark_cache_size>16777216</mark_cache_size></yandex>
      """
    let rest = "<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>"
    let users = """
      <yandex><profiles><default/></profiles><quotas><default/></quotas><users>
      <default><password></password>\(rest)</default><prism><password>geheim</password>\(rest)</prism></users></yandex>
      """
    try config.write(toFile: folder("config.xml"), atomically: false, encoding: .utf8)
    try users.write(toFile: folder("users.xml"), atomically: false, encoding: .utf8)
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    defer { close(null) }
    program = try StartedProgram(Self.path, ["--config-file=\(folder("config.xml"))"], .init(output: null, error: null))
    while program.exitCode == nil, try self.query("SELECT 1") != "1\n" { try await Task.sleep(for: .milliseconds(50)) }
  }

  deinit { program.signal(SIGKILL) }

  func options(_ change: (inout ClickHouseOutput.Options) -> Void = { _ in }) -> ClickHouseOutput.Options {
    var options = ClickHouseOutput.Options(url: url, user: "prism", passwordFile: passwordFile)
    change(&options)
    return options
  }

  /// nil: it does not answer.
  @discardableResult
  func query(_ text: String) throws -> String? {
    let answer = try? CurlClient().post(Array(text.utf8), to: url + "/", headers: [], timeout: .seconds(30))
    return answer.map { String(decoding: $0.body, as: UTF8.self) }
  }

  /// As it was a moment ago: another program may take it.
  private static func freePort() -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = bind(descriptor, $0, length)
        _ = getsockname(descriptor, $0, &length)
      }
    }
    return UInt16(bigEndian: address.sin_port)
  }
}
