"""What must hold in template.yaml as AWS sees it, subject by subject."""
