import Glibc
import PrismBase
import PrismConfig
import PrismLinux
import PrismProtocol

/// The files of `prismd --dev`: made where they are missing, and left as they are else, so that they can be edited.
struct DevelopmentFiles {
  let folder: DevelopmentFolder

  var collectorConfiguration: String { folder.path + "/collector.yaml" }
  var collectorLog: String { folder.path + "/collector.log" }
  var readerSocket: String { folder.path + "/collector/reader.sock" }
  var crashSpool: String { folder.path + "/crashes" }
  /// - Parameter path: of the folder, from the root or from the working folder.
  init(_ path: String) { folder = DevelopmentFolder(FilePath.absolute(path)) }

  /// - Returns: the collector's port, and that of its page; nil for the page of a folder that 0.1.0 made.
  /// - Throws: 73 where a file can't be made, 78 for another user's folder or a port that is no number.
  func prepare() throws(StartFailure) -> (packets: UInt16, page: UInt16?) {
    try checkOwner()
    do throws(StateFolder.Fault) { try StateFolder.prepare(folder.path) } catch {
      throw StartFailure(
        exitCode: error.isMode ? .configuration : .cannotCreate, message: "--dev: \(error.description)")
    }
    for path in [folder.path + "/namespaces.d", crashSpool] {
      guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw Self.failure(path) }
    }
    let isNew = access(collectorConfiguration, F_OK) != 0
    let port = try self.port("port", besides: nil)
    let page = isNew || access(folder.path + "/page-port", F_OK) == 0 ? try self.port("page-port", besides: port) : nil
    try write("main.key", Hex.random(byteCount: 16) + "\n")
    try write("prismd.yaml", daemonText)
    let own = ["appCrash, isRealtime: true, isUploadPayload: true", "appLag", "appBoot", "net", "netError"]
    try write(Self.name(of: .prism), Self.namespaceText(port, types: own))
    try write("collector.yaml", collectorText(port, page))
    return (port, page)
  }

  private static func name(of namespace: NamespaceName) -> String { "namespaces.d/\(namespace).yaml" }

  /// Types of every name are taken, with payloads.
  private static func namespaceText(_ port: UInt16, types: [String]) -> String {
    let list = (types + ["\"*\", isUploadPayload: true"]).map { "  - {type: \($0)}\n" }.joined()
    return "url: http://127.0.0.1:\(port)\nperiodicTimerSecond: 1\nmonitorList:\n\(list)"
  }

  /// Adds a namespace that a report names. The daemon takes the file up as it does one that a person saves.
  @Sendable func add(_ name: NamespaceName) -> NamespaceConfiguration? {
    guard let port = try? port("port", besides: nil),
      (try? write(Self.name(of: name), Self.namespaceText(port, types: []))) != nil
    else { return nil }
    return (try? configurationLoader(folder.configuration).load())?.snapshot.namespaces[name]
  }

  /// Another user could put links into the folder, and the files would be written where they lead.
  private func checkOwner() throws(StartFailure) {
    var facts = stat()
    guard stat(folder.path, &facts) == 0, facts.st_uid != getuid() else { return }
    throw StartFailure(
      exitCode: .configuration,
      message: "--dev: \(folder.path) belongs to the user \(facts.st_uid), must belong to yours (\(getuid())); "
        + "name a folder of your own")
  }

  private var daemonText: String {
    """
    ingest: {socket: \(quoted(folder.ingestSocket)), mode: 0600}
    control: {socket: \(quoted(folder.controlSocket))}
    state: \(quoted(folder.path + "/state"))
    memory: \(quoted(folder.path + "/memory"))
    keys: [{id: main, file: main.key}]
    crashSpool: {folder: \(quoted(crashSpool))}

    """
  }

  private func collectorText(_ port: UInt16, _ page: UInt16?) -> String {
    """
    listen: 127.0.0.1:\(port)
    \(page.map { "reader: {listen: 127.0.0.1:\($0)}" } ?? "")
    state: \(quoted(folder.path + "/collector"))
    keys: [{id: main, file: main.key}]

    """
  }

  /// A JSON string is a YAML string.
  private func quoted(_ text: String) -> String { JSONValue.string(text).text }

  /// The one of the last time, else one that is free and not `other`, for this start and all later ones.
  private func port(_ name: String, besides other: UInt16?) throws(StartFailure) -> UInt16 {
    let path = folder.path + "/" + name
    if let bytes = try? SmallFile.read(path) {
      guard let port = UInt16(String(decoding: bytes.filter { $0 > UInt8(ascii: " ") }, as: UTF8.self)) else {
        throw StartFailure(exitCode: .configuration, message: "\(path): is no port; remove the file")
      }
      return port
    }
    guard let port = (0..<16).lazy.compactMap({ _ in Self.freePort() }).first(where: { $0 != other }) else {
      throw StartFailure(exitCode: .unavailable, message: "--dev: 127.0.0.1 has no free port")
    }
    try write(name, "\(port)\n")
    return port
  }

  private static func freePort() -> UInt16? {
    withLoopbackSocket(0) { descriptor, address, size in
      var size = size
      guard bind(descriptor, address, size) == 0, getsockname(descriptor, address, &size) == 0 else { return nil }
      return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
    } ?? nil
  }

  /// Mode 0600; a file that is there stays.
  private func write(_ name: String, _ text: String) throws(StartFailure) {
    let path = folder.path + "/" + name
    do throws(FileError) { try SmallFile.create(path, with: Array(text.utf8), mode: 0o600) } catch {
      if errno != EEXIST { throw Self.failure(path) }
    }
  }

  private static func failure(_ path: String) -> StartFailure {
    StartFailure(exitCode: .cannotCreate, message: "\(path): \(String(cString: strerror(errno)))")
  }
}
