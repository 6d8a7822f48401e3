import Foundation
import PrismAdmission
import PrismProtocol

/// Takes the files of a folder as reports, one after the other: `NUMBER.TYPE.json` holds a meta. The note of the last file
/// is stored with its reports, so that each file is taken once, over restarts too.
actor FolderInput {
  private static let key = "folder.last"
  private let (folder, namespace): (String, NamespaceName)
  private let sink: any SubmissionSink
  /// One for all files, so that their common information is stored once.
  private let source: SubmissionSource

  init(_ folder: String, namespace: NamespaceName, peer: ReportingPeer, sink: any SubmissionSink) {
    (self.folder, self.namespace, self.sink) = (folder, namespace, sink)
    source = SubmissionSource(
      peer: peer, app: ["APP_NAME": "folder"], members: [CommonMember("FOLDER", .string(folder))], sessionID: "folder")
  }

  /// Hands over what came since the last call, and waits for its commit.
  func takeFiles() async throws -> [SubmissionAnswer] {
    let last = await sink.note(Self.key, of: namespace).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0 > last }.sorted()
    guard let newest = names.last else { return [] }
    let group = SubmissionGroup(
      try names.map(submission), note: .init(namespace: namespace, key: Self.key, value: Array(newest.utf8)),
      userID: source.peer.accountID)
    return await sink.submit(group)
  }

  private func submission(_ name: String) throws -> Submission {
    let parts = name.split(separator: ".")
    return Submission(
      parts.count > 1 ? String(parts[1]) : "", in: namespace.text,
      meta: try Data(contentsOf: URL(filePath: "\(folder)/\(name)")), reportID: ReportID("folder-\(parts[0])"),
      from: source)
  }
}
